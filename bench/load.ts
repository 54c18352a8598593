import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The GETs that are sent over keep-alive connections: one for each line of a file, over and over. */
export interface Load {
  readonly url: string;
  /** The Host header. */
  readonly host?: string | undefined;
  /** Each line is an Authorization header; a DPoP header can follow after a tab. */
  readonly file: string;
  /** The first line to send, so that a new token is not sent twice. Default 0. */
  readonly from?: number;
  readonly seconds: number;
  /** Default 32. */
  readonly connections?: number | undefined;
  /** Requests that each connection sends without waiting for responses. Default 1. */
  readonly pipelining?: number | undefined;
  /** Requests per second, evenly spaced and without pipelining. Default: as many as the server can serve. */
  readonly rate?: number | undefined;
}

/** The responses to a load. */
export interface LoadResult {
  /** Responses of any status. */
  readonly responses: number;
  readonly seconds: number;
  /** Responses other than 2xx. */
  readonly refused: number;
  /** Requests without a response. */
  readonly failed: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of a constant rate: time that the hypervisor took from the machine meanwhile, of all cores together. */
  readonly stolenMs?: number;
}

/** The server has core 0, or both. */
const LOAD_CORE = '1';

/** A command line that runs on some cores, if the system supports that. */
export function pinned(core: string, command: string, args: readonly string[]): [string, string[]] {
  return onPath('taskset') ? ['taskset', ['-c', core, command, ...args]] : [command, [...args]];
}

/** Sends a load and returns the result. */
export async function load(sent: Load): Promise<LoadResult> {
  const [command, args] = pinned(LOAD_CORE, process.execPath, [
    join(__dirname, sent.rate === undefined ? 'load-autocannon.mjs' : 'load-constant-rate.mjs'),
    JSON.stringify(sent),
  ]);
  const { stdout } = await run(command, args, { maxBuffer: 16 * 1_048_576 });
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as LoadResult;
}

function onPath(command: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, command)));
}

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** What is sent over 32 keep-alive connections: one request for each line of a file, in turn, again and again. */
export interface Load {
  readonly url: string;
  readonly file: string;
  /**
   * What a line is: the Authorization of a GET, where `-` stands for none, or the body of a POST. Default
   * `authorization`.
   */
  readonly lines?: 'authorization' | 'form';
  /** Lines to leave out at first, so that what an earlier load has sent does not come again. Default 0. */
  readonly from?: number;
  readonly seconds: number;
  /** Requests per second; without it as many as are answered. Needs autocannon. */
  readonly rate?: number;
}

/** What came back. */
export interface Answers {
  readonly answered: number;
  readonly seconds: number;
  /** Answers that are not 2xx or 3xx. */
  readonly refused: number;
  /** Requests without an answer. */
  readonly failed: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** The core that the load runs on, the other one is the server's. */
const LOAD_CORE = '1';
export const SERVER_CORE = '0';

/** The load generator in use: wrk where there is one, because it takes the least from the machine. */
export const generator = onPath('wrk') ? 'wrk' : 'autocannon';

/** A command that runs on one core where the system can do that. */
export function pinned(core: string, command: string, args: readonly string[]): [string, string[]] {
  return onPath('taskset') ? ['taskset', ['-c', core, command, ...args]] : [command, [...args]];
}

/** Sends a load and answers what came back. */
export async function load(sent: Load): Promise<Answers> {
  const { url, file, lines = 'authorization', seconds, from = 0, rate } = sent;
  const [command, args] =
    generator === 'wrk' && rate === undefined
      ? pinned(LOAD_CORE, 'wrk', [
          ...['-t1', '-c32', `-d${seconds}s`, '--latency', '-s', join(__dirname, 'load.lua'), url],
          ...['--', file, String(from), lines],
        ])
      : pinned(LOAD_CORE, process.execPath, [join(__dirname, 'load-autocannon.mjs'), JSON.stringify(sent)]);
  const { stdout } = await run(command, args, { maxBuffer: 16 * 1_048_576 });
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Answers;
}

function onPath(command: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, command)));
}

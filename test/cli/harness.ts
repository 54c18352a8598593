import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CliIo } from '../../src/cli/command';
import { run } from '../../src/cli/run';
import { createTestIssuer } from '../../src/testing';

/** The outcome of one command line. */
export interface Outcome {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The outcome of a command that succeeds. */
export function success(stdout: string): Outcome {
  return { exitCode: 0, stdout, stderr: '' };
}

/** The outcome of a command that prints a problem and nothing else. */
export function failure(exitCode: number, problem: string): Outcome {
  return { exitCode, stdout: '', stderr: `tillgate: ${problem}\n` };
}

/** A request that a command sent. */
export interface SentRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly body: string;
}

/** Runs command lines in this process, with the dependencies of the scene. */
export interface CliScene {
  readonly dataDir: string;
  readonly sent: SentRequest[];
  /** What the running command has written to stdout so far. */
  readonly output: () => string;
  readonly run: (...argv: string[]) => Promise<Outcome>;
}

export interface SceneOptions {
  /** Default: an empty one. */
  readonly dataDir?: string;
  readonly env?: Record<string, string>;
  /** Responds to the requests of the commands. Default: every server is unreachable. */
  readonly respond?: (request: SentRequest) => Response | undefined;
  readonly stdin?: string;
  /** Whether stderr is a terminal. */
  readonly isTerminal?: boolean;
  readonly untilStopped?: () => Promise<void>;
  readonly fetch?: typeof fetch;
  /** Default: the data directory. */
  readonly cwd?: string;
}

const dataDirs: string[] = [];
afterAll(() => dataDirs.forEach((dataDir) => rmSync(dataDir, { recursive: true, force: true })));

/** A scene whose data directory is removed after the last test of the file. */
export function cliScene(options: SceneOptions = {}): CliScene {
  const { dataDir = mkdtempSync(join(tmpdir(), 'tillgate-cli-')) } = options;
  dataDirs.push(dataDir);
  const sent: SentRequest[] = [];
  let stdout = '';

  function respond(url: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    const request = new Request(url, init);
    const body = bodyOf(init);
    sent.push({ method: request.method, url: request.url, headers: request.headers, body });
    const response = options.respond?.(sent.at(-1) as SentRequest);
    return response ? Promise.resolve(response) : Promise.reject(unreachable());
  }

  async function runOnce(...argv: string[]): Promise<Outcome> {
    let stderr = '';
    stdout = '';
    const io: CliIo = {
      // Child processes load the sources through another compiler, whose counts c8 would mix up with ours.
      env: { NODE_V8_COVERAGE: '', TILLGATE_DATA_DIR: dataDir, ...options.env },
      cwd: options.cwd ?? dataDir,
      stdout: { write: (text) => (stdout += text) },
      stderr: { isTTY: options.isTerminal === true, write: (text) => (stderr += text) },
      fetch: options.fetch ?? respond,
      readStdin: () => Promise.resolve(options.stdin ?? ''),
      untilStopped: options.untilStopped ?? (() => Promise.resolve()),
      programName: 'tillgate',
    };
    return { exitCode: await run(argv, io), stdout, stderr };
  }

  return { dataDir, sent, output: () => stdout, run: runOnce };
}

/** The commands send text and forms only. */
function bodyOf({ body }: RequestInit): string {
  return typeof body === 'string' || body instanceof URLSearchParams ? body.toString() : '';
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json', ...headers } });
}

function unreachable(): Error {
  return new TypeError('fetch failed', { cause: Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }) });
}

export const AUTH_URL = 'https://login.test';
export const issuer = createTestIssuer({ issuer: AUTH_URL });
export const keys = 'keys' in issuer.options ? issuer.options.keys : undefined;

/** The authorization server of that issuer, with members of its metadata. */
export function authorizationServer({ url }: SentRequest, metadata: object = {}): Response {
  if (url === `${AUTH_URL}/.well-known/openid-configuration`) {
    return json(200, { issuer: AUTH_URL, jwks_uri: `${AUTH_URL}/jwks`, ...metadata });
  }
  return url === `${AUTH_URL}/jwks` ? json(200, keys) : json(404, {});
}

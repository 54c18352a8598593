import { spawn, spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { startTillgate } from '../setup/tillgate';
import type { DevReport } from '../setup/tillgate';
import { listen } from '../../support/listen';

/** A program that reads lines of a number and a path, sends as many calls in parallel, and prints their outcomes as JSON. */
export interface CallerProgram {
  readonly language: string;
  readonly library: string;
  readonly version: string;
  readonly command: readonly [string, ...string[]];
  /** Succeeds if what the command needs is installed. */
  readonly probe?: readonly [string, ...string[]];
}

/** A folder with what the programs in other languages need; test/all/callers/README.md says how it is made. */
const INSTALLED = process.env['CALLERS'] ?? 'node_modules/.callers';
const PYTHON = join(INSTALLED, 'python/bin/python');
const JAVA = join(INSTALLED, 'java/target/caller.jar');
const GO = join(INSTALLED, 'go/caller');
const NODE = [process.execPath, '--conditions=source', '--import', 'tsx'] as const;
const file = (name: string): string => join(__dirname, name);

export const PROGRAMS = {
  client: {
    ...{ language: 'JavaScript', library: '`@tillgate/client`', version: 'this' },
    command: [...NODE, file('run-client.mjs')],
  },
  openid: {
    ...{ language: 'JavaScript', library: 'openid-client', version: '6.8.9' },
    command: [...NODE, file('run-openid-client.mjs')],
  },
  authlib: {
    ...{ language: 'Python', library: 'Authlib with requests', version: '1.9.10' },
    command: [PYTHON, file('run_authlib.py')],
    probe: [PYTHON, '-c', 'import authlib, requests'],
  },
  go: {
    ...{ language: 'Go', library: 'golang.org/x/oauth2', version: '0.38.0' },
    command: [GO],
    probe: ['test', '-x', GO],
  },
  spring: {
    ...{ language: 'Java', library: 'Spring RestClient', version: 'Spring Security 7.1.2' },
    command: ['java', '-jar', JAVA],
    probe: ['test', '-f', JAVA],
  },
} as const satisfies Record<string, CallerProgram>;

/** Why a program cannot run here; `undefined` if it can. */
export function missingFor({ probe }: CallerProgram): string | undefined {
  if (!probe) return undefined;
  const [command, ...args] = probe;
  return spawnSync(command, args).status === 0 ? undefined : `${probe.join(' ')} fails: see test/all/callers/README.md`;
}

/** The status of a call, or the text of its error. */
type Outcome = number | string;

/** A program that calls the scaffold through servers which count, and which fail on request. */
interface Scene {
  /** Sends calls in parallel. */
  call(count: number, path?: string): Promise<readonly Outcome[]>;
  /** Changes the Description; returns the status. */
  change(): Promise<number>;
  /** Token requests since the last time that it was called. */
  newTokenRequests(): number;
  /** Requests a token besides the program, which the limit of the token endpoint counts. */
  requestToken(): Promise<number>;
  /** How many calls get 503 from now on, before the API does. */
  fail(calls: number): void;
  /** Authorization headers that another host got, which the API redirects to. */
  readonly leaked: readonly string[];
}

type Variables = Readonly<Record<`TILLGATE_${string}`, string>>;
const ELSEWHERE = '/v1/elsewhere';

async function withScene<Result>(
  program: CallerProgram,
  variables: Variables,
  run: (scene: Scene) => Promise<Result>,
): Promise<Result> {
  const dataDir = await mkdtemp(join(tmpdir(), 'tillgate-callers-'));
  const ports = { TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0' } as const;
  const tillgate = await startTillgate<DevReport>('dev', { ...ports, TILLGATE_DATA_DIR: dataDir, ...variables });
  const { auth_url, base_url, clients } = tillgate.report;
  let tokenRequests = 0;
  let failures = 0;
  const leaked: string[] = [];
  const other = await listen(({ headers }, res) => {
    if (headers.authorization !== undefined) leaked.push(headers.authorization);
    res.writeHead(401, { 'WWW-Authenticate': 'Bearer error="invalid_token"' }).end();
  });
  const tokenServer = await listen((req, res) => {
    tokenRequests += 1;
    forward(auth_url, req, res);
  });
  const api = await listen((req, res) => {
    if (failures > 0) {
      failures -= 1;
      res.writeHead(503, { 'Retry-After': '1' }).end();
    } else if (req.url === ELSEWHERE) {
      // The same machine by another name: another host.
      res.writeHead(307, { Location: other.url.replace('127.0.0.1', 'localhost') }).end();
    } else forward(base_url, req, res);
  });
  const secret = clients.find(({ client_id }) => client_id === 'kiosk')?.client_secret ?? '';
  const credential = { CLIENT_ID: 'kiosk', CLIENT_SECRET: secret, SCOPE: 'orders:read' };
  const [command, ...args] = program.command;
  const env = { ...process.env, AUTH_URL: tokenServer.url, BASE_URL: api.url, ...credential };
  const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  try {
    return await run({
      leaked,
      async call(count, path = '/v1/orders') {
        child.stdin.write(`${count} ${path}\n`);
        const { value } = (await lines.next()) as { value?: string };
        if (value === undefined) throw new Error(`${program.library} has ended`);
        return JSON.parse(value) as Outcome[];
      },
      async change() {
        const headers = { 'Content-Type': 'application/json' };
        const body = '{"description":"Kiosk at the door"}';
        return (await fetch(`${auth_url}/clients/kiosk`, { method: 'PATCH', headers, body })).status;
      },
      newTokenRequests() {
        const count = tokenRequests;
        tokenRequests = 0;
        return count;
      },
      async requestToken() {
        const form = {
          grant_type: 'client_credentials',
          scope: 'orders:read',
          client_id: 'kiosk',
          client_secret: secret,
        };
        return (await fetch(`${auth_url}/connect/token`, { method: 'POST', body: new URLSearchParams(form) })).status;
      },
      fail: (calls) => void (failures = calls),
    });
  } finally {
    child.kill();
    await tillgate.stop();
    for (const server of [tokenServer, api, other]) await server.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

function forward(origin: string, req: IncomingMessage, res: ServerResponse): void {
  const { method, headers } = req;
  const forwarded = request(`${origin}${req.url}`, { method, headers }, (response) => {
    res.writeHead(response.statusCode ?? 502, response.headers);
    response.pipe(res);
  });
  req.pipe(forwarded.on('error', () => res.destroy()));
}

/** What calls got, and the token requests that they cost. */
export interface Seen {
  readonly outcomes: readonly Outcome[];
  readonly tokenRequests: number;
}

/** One call, a change of the Description, then 100 parallel calls. The gate compares the stamped number, or the time of issue. */
export function afterChange(program: CallerProgram, compared: 'stamped' | 'iat'): Promise<Seen> {
  return withScene(program, compared === 'iat' ? { TILLGATE_GENERATION_CLAIM: 'iat' } : {}, async (scene) => {
    // Registration is a change too: a token of its second is refused.
    if (compared === 'iat') await nextSecond();
    await prepare(scene);
    // The calls come in the second of the change: a token of that second is refused too.
    if (compared === 'iat') await nextSecond();
    expectStatus(await scene.change(), 200);
    return { outcomes: await scene.call(100), tokenRequests: scene.newTokenRequests() };
  });
}

/** A call that gets 503 with a Retry-After of 1 s. */
export function whileUnavailable(program: CallerProgram): Promise<Seen> {
  return withScene(program, {}, async (scene) => {
    await prepare(scene);
    scene.fail(1);
    return { outcomes: await scene.call(1), tokenRequests: scene.newTokenRequests() };
  });
}

/** 100 calls after a change while the token endpoint is at its limit, and 100 more after longer than a second. */
export function atTheLimit(program: CallerProgram): Promise<readonly [first: Seen, later: Seen]> {
  return withScene(program, { TILLGATE_TOKEN_RATE_LIMIT: '2/m' }, async (scene) => {
    await prepare(scene);
    expectStatus(await scene.requestToken(), 200);
    expectStatus(await scene.change(), 200);
    const first = { outcomes: await scene.call(100), tokenRequests: scene.newTokenRequests() };
    await pause(1_500);
    return [first, { outcomes: await scene.call(100), tokenRequests: scene.newTokenRequests() }];
  });
}

/** A call that the API redirects to another host, which responds as if it had refused a token. */
export function redirected(program: CallerProgram): Promise<Seen & Pick<Scene, 'leaked'>> {
  return withScene(program, {}, async (scene) => {
    await prepare(scene);
    const outcomes = await scene.call(1, ELSEWHERE);
    return { outcomes, tokenRequests: scene.newTokenRequests(), leaked: scene.leaked };
  });
}

function nextSecond(): Promise<void> {
  return pause(1_000 - (Date.now() % 1_000));
}

/** The program has a token that the API has accepted. */
async function prepare(scene: Scene): Promise<void> {
  const [outcome] = await scene.call(1);
  if (outcome !== 200) throw new Error(`the first call got ${outcome}`);
  const tokenRequests = scene.newTokenRequests();
  if (tokenRequests !== 1) throw new Error(`the first call cost ${tokenRequests} token requests`);
}

function expectStatus(status: number, expected: number): void {
  if (status !== expected) throw new Error(`got ${status} instead of ${expected}`);
}

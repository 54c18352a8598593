import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startTillgate } from '../setup/tillgate';
import type { DevReport } from '../setup/tillgate';
import { listen } from '../../support/listen';

/** A program that reads a number per line, sends as many calls in parallel, and prints their statuses. */
export interface CallerProgram {
  readonly language: string;
  readonly library: string;
  readonly command: readonly [string, ...string[]];
}

const PYTHON = process.env['CALLERS_PYTHON'] ?? 'python3';
const NODE = [process.execPath, '--conditions=source', '--import', 'tsx'] as const;
const file = (name: string): string => join(__dirname, name);

export const PROGRAMS = {
  client: { language: 'JavaScript', library: '@tillgate/client', command: [...NODE, file('run-client.mjs')] },
  openid: { language: 'JavaScript', library: 'openid-client 6.8.9', command: [...NODE, file('run-openid-client.mjs')] },
  authlib: { language: 'Python', library: 'Authlib 1.9.10', command: [PYTHON, file('run_authlib.py')] },
} as const satisfies Record<string, CallerProgram>;

interface AfterChange {
  /** Status of the one call before the change, and the token requests that it cost. */
  readonly before: readonly number[];
  readonly first: number;
  /** Status of the change. */
  readonly changed: number;
  readonly after: readonly number[];
  readonly tokenRequests: number;
}

/** What 100 parallel calls after a change of the Description get, and the token requests that they cost. */
export async function runAfterChange({ command: [program, ...args] }: CallerProgram): Promise<AfterChange> {
  const dataDir = await mkdtemp(join(tmpdir(), 'tillgate-callers-'));
  const ports = { TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0' } as const;
  const tillgate = await startTillgate<DevReport>('dev', { ...ports, TILLGATE_DATA_DIR: dataDir });
  const { auth_url, base_url, clients } = tillgate.report;
  let tokenRequests = 0;
  const counting = await listen((req, res) => {
    tokenRequests += 1;
    const { method, headers } = req;
    const forwarded = request(`${auth_url}${req.url}`, { method, headers }, (response) => {
      res.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(res);
    });
    req.pipe(forwarded.on('error', () => res.destroy()));
  });
  const CLIENT_SECRET = clients.find(({ client_id }) => client_id === 'kiosk')?.client_secret ?? '';
  const named = { AUTH_URL: counting.url, BASE_URL: base_url, CLIENT_ID: 'kiosk', CLIENT_SECRET, SCOPE: 'orders:read' };
  const child = spawn(program, args, { env: { ...process.env, ...named }, stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  async function call(count: number): Promise<readonly number[]> {
    child.stdin.write(`${count}\n`);
    const { value } = (await lines.next()) as { value?: string };
    return JSON.parse(value ?? '[]') as number[];
  }
  try {
    const before = await call(1);
    const first = tokenRequests;
    const change = { method: 'PATCH', headers: { 'Content-Type': 'application/json' } };
    const changed = await fetch(`${auth_url}/clients/kiosk`, {
      ...change,
      body: '{"description":"Kiosk at the door"}',
    });
    const after = await call(100);
    return { before, first, changed: changed.status, after, tokenRequests: tokenRequests - first };
  } finally {
    child.kill();
    await tillgate.stop();
    await counting.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

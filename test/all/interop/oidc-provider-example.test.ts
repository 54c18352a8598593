import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { run } from '../../../src/cli/run';
import { started, stop } from '../setup/process';
import { startTillgate } from '../setup/tillgate';
import { freePort } from '../support/free-port';

const SERVER = join(__dirname, '../../../examples/oidc-provider/server.js');

let provider: ChildProcess;
let issuer: string;

beforeAll(async () => {
  issuer = `http://127.0.0.1:${await freePort()}`;
  const env = { ...process.env, PORT: new URL(issuer).port };
  provider = spawn(process.execPath, [SERVER], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  await started(provider, once(provider.stdout!, 'data'));
});

afterAll(() => stop(provider));

/** A token of the till of the example. */
async function token(resource: string): Promise<string> {
  const grant = { grant_type: 'client_credentials', scope: 'orders:read', resource };
  const authorization = `Basic ${Buffer.from('till-9:till-9-secret').toString('base64')}`;
  const body = new URLSearchParams(grant);
  const response = await fetch(`${issuer}/token`, { method: 'POST', headers: { authorization }, body });
  return ((await response.json()) as { access_token: string }).access_token;
}

/** The variables of an API that trusts the example. */
const variables = () =>
  ({
    ...{ TILLGATE_ISSUER: issuer, TILLGATE_AUDIENCE: 'https://api.example.com' },
    TILLGATE_INTROSPECTION_CLIENT_ID: 'orders-api',
    TILLGATE_INTROSPECTION_CLIENT_SECRET: 'orders-api-secret',
  }) as const;

/** What `tillgate check` says about a token, with the variables of the example. */
async function check(stdin: string): Promise<readonly string[]> {
  let stdout = '';
  const io = {
    env: variables(),
    cwd: '.',
    stdout: { write: (text: string) => (stdout += text) },
    stderr: { write: (text: string) => (stdout += text) },
    ...{ fetch, readStdin: () => Promise.resolve(stdin), untilStopped: () => Promise.resolve() },
    programName: 'tillgate',
  };
  await run(['check', '--token', '-'], io);
  return stdout.split('\n');
}

it.each(['', '/opaque'])(
  'examples/oidc-provider runs, and check accepts its tokens for https://api.example.com%s',
  async (path) => {
    const accessToken = await token(`https://api.example.com${path}`);
    expect(accessToken.split('.')).toHaveLength(path === '' ? 3 : 1);
    const lines = await check(accessToken);
    expect(lines.filter((line) => line.startsWith('failed'))).toEqual([]);
    expect(lines).toContain('ok      introspection: the endpoint accepts the client orders-api');
    expect(lines).toContainEqual(
      expect.stringMatching(
        /token: accepted: client till-9 \(client_id\), scopes orders:read \(scope\), generation \d{13} /,
      ),
    );
  },
);

it('the scaffold, with the same variables, accepts both kinds of tokens', async () => {
  const tillgate = await startTillgate<{ listening: string }>('app', { ...variables(), TILLGATE_PORT: '0' });
  const call = async (accessToken: string, path = '/v1/orders'): Promise<number> => {
    const headers = { authorization: `Bearer ${accessToken}` };
    return (await fetch(`${tillgate.report.listening}${path}`, { headers })).status;
  };
  try {
    const [jwt, opaque] = [await token('https://api.example.com'), await token('https://api.example.com/opaque')];
    expect([await call(jwt), await call(opaque), await call(opaque, '/v1/menus')]).toEqual([200, 200, 403]);
    expect(await call('x'.repeat(43))).toBe(401);
    expect(tillgate.stdout() + tillgate.log()).not.toContain('orders-api-secret');
  } finally {
    await tillgate.stop();
  }
});

import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startTillgate } from '../setup/tillgate';
import type { DevReport, RunningTillgate } from '../setup/tillgate';

const run = promisify(execFile);
const PACKAGES = ['authlib==1.9.9', 'requests==2.34.2'];
const SCRIPT = join(__dirname, 'clients/authlib-client.py');
const SCOPE = 'orders:read menus:read';
/** What a kiosk with these scopes may call. */
const STATUSES = { '/v1/orders': 200, '/v1/menus': 200, '/v1/items': 403 };

let folder: string;
let tillgate: RunningTillgate<DevReport>;
let asked: { readonly clientId: string; readonly secret: string; readonly tokenEndpoint: string };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tillgate-clients-'));
  const dataDir = join(folder, 'data');
  const ports = { TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0' } as const;
  tillgate = await startTillgate('dev', { ...ports, TILLGATE_DATA_DIR: dataDir });
  const { auth_url, clients } = tillgate.report;
  const secret = clients.find(({ client_id }) => client_id === 'kiosk')!.client_secret;
  asked = { clientId: 'kiosk', secret, tokenEndpoint: `${auth_url}/connect/token` };
});

afterAll(async () => {
  await tillgate?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Whether a program works here; says in one line when it does not. */
function available(what: string, command: string, args: readonly string[]): boolean {
  const works = spawnSync(command, args).status === 0;
  if (!works) console.warn(`the suite of ${what} is skipped: "${command} ${args.join(' ')}" fails`);
  return works;
}

const withCurl = available('curl', 'curl', ['--version']) ? describe : describe.skip;
const withPython = available('authlib', 'python3', ['-c', 'import venv, ensurepip']) ? describe : describe.skip;

withCurl('curl', () => {
  const curl = async (...args: readonly string[]): Promise<string> => (await run('curl', ['--silent', ...args])).stdout;
  const grant = ['--data', 'grant_type=client_credentials', '--data-urlencode', `scope=${SCOPE}`];

  it.each(['basic', 'body'])('gets a token with %s credentials and calls the API', async (method) => {
    const { clientId, secret, tokenEndpoint } = asked;
    const credentials =
      method === 'basic'
        ? ['--user', `${clientId}:${secret}`]
        : ['--data-urlencode', `client_id=${clientId}`, '--data-urlencode', `client_secret=${secret}`];
    const response = JSON.parse(await curl(...credentials, ...grant, tokenEndpoint)) as Record<string, unknown>;
    expect(response).toEqual({
      access_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: 3600,
      scope: SCOPE,
    });
    for (const [path, status] of Object.entries(STATUSES)) {
      const authorization = `Authorization: Bearer ${String(response['access_token'])}`;
      const flags = ['--header', authorization, '--output', '/dev/null', '--write-out', '%{http_code}'];
      expect([path, await curl(...flags, `${tillgate.report.base_url}${path}`)]).toEqual([path, String(status)]);
    }
  });
});

withPython('authlib for Python', () => {
  beforeAll(async () => {
    await run('python3', ['-m', 'venv', join(folder, 'python')]);
    await run(join(folder, 'python/bin/pip'), ['install', '--quiet', ...PACKAGES]);
  });

  it.each(['client_secret_basic', 'client_secret_post'])('gets a token by %s and calls the API', async (method) => {
    const urls = Object.keys(STATUSES).map((path) => `${tillgate.report.base_url}${path}`);
    const question = JSON.stringify({ ...asked, method, scope: SCOPE, urls });
    const { stdout } = await run(join(folder, 'python/bin/python'), [SCRIPT, question]);
    expect(JSON.parse(stdout)).toMatchObject({
      token: { token_type: 'Bearer', expires_in: 3600, scope: SCOPE },
      statuses: Object.values(STATUSES),
    });
  });
});

import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { connect } from 'node:net';
import { startTillgate } from '../setup/tillgate';
import type { DevReport, RunningTillgate } from '../setup/tillgate';
import { basic } from '../../cli/auth-server/fixtures';
import { newDataDir } from '../../cli/data-dir';
import { eventually } from '../support/eventually';

const ADMIN_TOKEN = 'admin-token-of-this-test-5e1f0c';
const WRONG = 'wrong-secret-of-this-test-77ab31';
const dataDir = newDataDir();
let tillgate: RunningTillgate<DevReport>;

/** Every secret that was presented or issued. */
const secrets = new Set<string>([ADMIN_TOKEN, WRONG]);
const statuses: number[] = [];

beforeAll(async () => {
  tillgate = await startTillgate('dev', {
    TILLGATE_PORT: '0',
    TILLGATE_AUTH_PORT: '0',
    TILLGATE_DATA_DIR: dataDir,
    TILLGATE_ADMIN_TOKEN: ADMIN_TOKEN,
    TILLGATE_LOG_LEVEL: 'trace',
  });
});
afterAll(async () => {
  await tillgate?.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

/** Sends a request, and records the secrets in its Authorization header and in its response. */
async function send(url: string, init: RequestInit = {}): Promise<Record<string, string>> {
  const authorization = new Headers(init.headers).get('authorization');
  if (authorization !== null) secrets.add(authorization.replace(/^\S+ /, ''));
  const response = await fetch(url, init);
  statuses.push(response.status);
  const body = (await response.json().catch(() => ({}))) as Record<string, string> & {
    token?: { access_token: string };
  };
  for (const given of [body['client_secret'], body['access_token'], body.token?.access_token]) {
    if (given !== undefined) secrets.add(given);
  }
  return body;
}

function form(members: Record<string, string>, authorization?: string): RequestInit {
  const headers = authorization === undefined ? {} : { authorization };
  return { method: 'POST', headers, body: new URLSearchParams(members) };
}

function admin(method: string, body: string, token = ADMIN_TOKEN): RequestInit {
  return { method, headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' }, body };
}

/** Requests that Node's parser cannot read never reach a handler. */
async function sendBroken(url: string, secret: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(`POST /connect/token?secret=${secret} HTTP/1.1\r\nAuthorization: Bearer ${secret}\r\nbro ken\r\n\r\n`);
  const [response] = (await once(socket, 'data')) as [Buffer];
  statuses.push(Number(response.toString().split(' ')[1]));
  socket.destroy();
}

/** Every place where a caller can put a secret, right and wrong, at both servers. */
async function useAndMisuse({ base_url, auth_url, clients }: DevReport): Promise<void> {
  const [till] = clients;
  if (!till) throw new Error('the first start registers clients');
  const { client_id, client_secret } = till;
  secrets.add(client_secret);
  const grant = { grant_type: 'client_credentials', scope: 'orders:read' };
  const token = `${auth_url}/connect/token`;

  const { access_token = '' } = await send(token, form({ ...grant, client_id, client_secret }));
  await send(token, form(grant, basic(client_id, client_secret)));
  await send(token, form(grant, basic(client_id, WRONG)));
  await send(token, form({ ...grant, client_id, client_secret: WRONG }));
  await send(token, form({ ...grant, client_id, client_secret }, basic(client_id, client_secret)));
  await send(`${token}?client_secret=${client_secret}`, form(grant));
  await send(`${token}/${client_secret}`, form(grant));
  await send(`${auth_url}/connect/introspect`, form({ client_id, client_secret, token: access_token }));

  const path = `${auth_url}/clients`;
  await send(path, admin('POST', '{"client_id":"new","scope":"orders:read"}'));
  await send(path, admin('POST', `{"client_secret":"${WRONG}"}`));
  await send(path, admin('POST', `{"client_secret":"${WRONG}`));
  await send(path, admin('POST', '{}', WRONG));
  await send(`${path}/new/secrets`, admin('POST', '{}'));
  await send(`${path}/${client_id}`, admin('PATCH', '{"description":"Till 2"}'));
  await send(`${path}?access_token=${ADMIN_TOKEN}`, admin('POST', '{}'));

  const orders = `${base_url}/v1/orders`;
  const headers = { authorization: `Bearer ${access_token}` };
  // The change reaches the process of the API a moment later.
  await eventually('the API refuses the token', async () => (await fetch(orders, { headers })).status === 401);
  await send(orders, { headers });
  await send(`${orders}?access_token=${access_token}`);
  await send(`${orders}/${access_token}`, { headers });
  await send(orders, { headers: { authorization: basic(client_id, client_secret) } });
  for (const url of [auth_url, base_url]) await sendBroken(url, access_token);
}

it('writes no secret, token or Authorization value to stdout and stderr, except each new secret once', async () => {
  const { report } = tillgate;
  await useAndMisuse(report);
  await tillgate.stop();

  // Each request had its intended outcome, or this test would prove nothing.
  expect(statuses).toEqual([
    ...[200, 200, 401, 401, 400, 400, 404, 200],
    ...[201, 400, 400, 401, 201, 200, 400],
    ...[401, 400, 401, 401, 400, 400],
  ]);
  const lines = tillgate.log().trim().split('\n');
  expect(lines.length).toBeGreaterThanOrEqual(6);
  const shown = report.clients.reduce((text, { client_secret }) => text.replace(client_secret, ''), tillgate.stdout());
  const said = `${shown}\n${tillgate.log()}`;
  // The payload and the signature of a token are searched separately, so that a part of a token counts too.
  const pieces = [...secrets].flatMap((secret) => [secret, ...secret.split('.').slice(1)]);
  expect(pieces.filter((piece) => said.includes(piece))).toEqual([]);
});

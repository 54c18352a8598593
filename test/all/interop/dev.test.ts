import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import request from 'supertest';
import type { Response } from 'supertest';
import { startTillgate } from '../setup/tillgate';
import type { DevReport, RunningTillgate } from '../setup/tillgate';
import { expectRefused } from './guarded-api';
import { COMBINATIONS, startOAuthClients } from './oauth-clients';
import type { Library, Method, OAuthClients } from './oauth-clients';

let dataDir: string;
let clients: OAuthClients;
let tillgate: RunningTillgate<DevReport>;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'tillgate-dev-'));
  clients = await startOAuthClients();
  tillgate = await startTillgate('dev', { TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0', TILLGATE_DATA_DIR: dataDir });
});

afterAll(async () => {
  await tillgate?.stop();
  await clients?.stop();
  await rm(dataDir, { recursive: true });
});

/** A token of one of the demo clients. */
async function fetchToken(id: string, library: Library, method: Method): Promise<string> {
  const { auth_url: issuer, clients: demo } = tillgate.report;
  const secret = demo.find(({ client_id }) => client_id === id)!.client_secret;
  const tokenEndpoint = `${issuer}/connect/token`;
  const parameters = { scope: 'orders:read menus:read' };
  const asked = { issuer, tokenEndpoint, clientId: id, secret, method, parameters };
  return (await clients.token(library, asked)).access_token;
}

async function send(method: 'get' | 'post', path: string, token: string): Promise<Response> {
  return await request(tillgate.report.base_url)[method](path).set('Authorization', `Bearer ${token}`);
}

describe.each(COMBINATIONS)('tillgate dev, called with a token that %s fetched with %s credentials', (...by) => {
  it('allows what the scope allows, and nothing else', async () => {
    const token = await fetchToken('kiosk', ...by);
    expect((await send('get', '/v1/orders', token)).status).toBe(200);
    expect((await send('get', '/v1/menus', token)).status).toBe(200);
    const refused = await send('get', '/v1/items', token);
    const details = { scopes: ['items:read'], requestId: refused.headers['x-request-id'] as string };
    expectRefused(refused, 'insufficient_scope', details, tillgate.report.base_url);
  });

  it('discards the token when the Description of its client changes, and takes the one created for it', async () => {
    const earlier = await fetchToken('pos-terminal', ...by);
    expect((await send('get', '/v1/orders', earlier)).status).toBe(200);
    const { body } = await request(tillgate.report.auth_url)
      .patch('/clients/pos-terminal')
      .send({ description: `Till, now of ${by.join(' ')}` })
      .expect(200);
    const refused = await send('get', '/v1/orders', earlier);
    const details = { requestId: refused.headers['x-request-id'] as string };
    expectRefused(refused, 'superseded', details, tillgate.report.base_url);
    expect((await send('get', '/v1/orders', body.token.access_token)).status).toBe(200);
  });
});

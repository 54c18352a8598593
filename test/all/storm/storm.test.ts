import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { boundToken, proof } from '../../support/dpop';
import { token } from '../../support/issuer';
import { testKey } from '../../support/keys';
import { stop } from '../setup/process';
import { startTillgate } from '../setup/tillgate';
import type { DevReport, RunningTillgate } from '../setup/tillgate';
import { rawRequest, storm, WEBSOCKET } from './storm.cjs';

/** STORM_SEED=... repeats a run. Recipes and examples get their share in the suites that install them. */
const seed = Number(process.env['STORM_SEED'] ?? randomInt(2 ** 31));
const CONNECTIONS = 2_000;

beforeAll(() => console.log(`STORM_SEED=${seed}`));

const JSON_BODY = { 'Content-Type': 'application/json' };
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };
const portOf = (url: string): number => Number(new URL(url).port);

describe('the scaffold and the token server', () => {
  let folder: string;
  let tillgate: RunningTillgate<DevReport>;
  let form: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tillgate-storm-'));
    tillgate = await startTillgate<DevReport>('dev', {
      ...{ TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0', TILLGATE_DATA_DIR: folder },
      ...{ TILLGATE_RATE_LIMIT: 'off', TILLGATE_TOKEN_RATE_LIMIT: 'off' },
    });
    const [client] = tillgate.report.clients;
    form = new URLSearchParams({
      ...{ grant_type: 'client_credentials', scope: 'orders:read orders:write' },
      ...{ client_id: client!.client_id, client_secret: client!.client_secret },
    }).toString();
  });
  afterAll(async () => {
    await tillgate?.stop();
    await rm(folder, { recursive: true });
  });

  async function newToken(): Promise<string> {
    const url = `${tillgate.report.auth_url}/connect/token`;
    const response = await fetch(url, { method: 'POST', headers: FORM, body: form });
    expect(response.status).toBe(200);
    return ((await response.json()) as { access_token: string }).access_token;
  }

  async function ordersWith(raw: string): Promise<number> {
    const response = await fetch(`${tillgate.report.base_url}/v1/orders`, {
      headers: { Authorization: `Bearer ${raw}` },
    });
    await response.text();
    return response.status;
  }

  it('keep responding after clients of the API reset their connections', async () => {
    const Authorization = `Bearer ${await newToken()}`;
    const requests = [
      rawRequest('GET', '/v1/orders', { Authorization }),
      rawRequest('GET', '/v1/orders', { Authorization: 'Bearer a.b.c' }),
      rawRequest('GET', '/v1/orders'),
      rawRequest('POST', '/v1/orders', { Authorization, ...JSON_BODY }, '{"lines":[]}'),
      rawRequest('GET', '/docs/swagger-ui-bundle.js'),
      rawRequest('GET', '/v1/orders', { Authorization, ...WEBSOCKET }),
    ];
    await storm({ port: portOf(tillgate.report.base_url), connections: CONNECTIONS, requests, seed });
    expect(await ordersWith(await newToken())).toBe(200);
  });

  it('keep responding after clients of the token server reset their connections', async () => {
    const requests = [
      rawRequest('POST', '/connect/token', FORM, form),
      rawRequest('POST', '/connect/token', FORM, 'grant_type=client_credentials'),
      rawRequest('GET', '/.well-known/openid-configuration/jwks'),
      rawRequest('GET', '/clients'),
      rawRequest('POST', '/clients', JSON_BODY, '{"scope":"orders:read"}'),
      rawRequest('GET', '/generations?wait=30000'),
      rawRequest('GET', '/console/events'),
      rawRequest('GET', '/console'),
      rawRequest('GET', '/console', WEBSOCKET),
    ];
    await storm({ port: portOf(tillgate.report.auth_url), connections: CONNECTIONS, requests, seed });
    expect(await ordersWith(await newToken())).toBe(200);
  });
});

describe('an app with upgrades, streams, DPoP and introspection', () => {
  const children: ChildProcess[] = [];
  let port: number;

  async function start(script: string, ...args: readonly string[]): Promise<number> {
    const child = fork(join(__dirname, script), args, { execArgv: ['--conditions=source', '--import', 'tsx'] });
    children.push(child);
    const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`${script} ended with ${code}`)));
    const [said] = (await Promise.race([once(child, 'message'), ended])) as [{ port: number }];
    return said.port;
  }

  beforeAll(async () => {
    const endpoint = await start('../faults/flood-process.ts', 'issuer');
    port = await start('app-process.ts', `http://127.0.0.1:${endpoint}`, JSON.stringify({ jwk: testKey().jwk }));
  });
  afterAll(async () => {
    const running = children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
    await Promise.all(running.map((child) => stop(child)));
  });

  it('keeps responding after its clients reset their connections', async () => {
    const bound = { Authorization: `DPoP ${boundToken()}` };
    const callers = [
      {},
      { Authorization: `Bearer ${token()}` },
      { Authorization: 'Bearer active_till_1' },
      { Authorization: 'Bearer inactive' },
    ];
    const requests = callers.flatMap((headers) => [
      rawRequest('GET', '/v1/orders', headers),
      rawRequest('POST', '/v1/orders', { ...headers, ...JSON_BODY }, '{"lines":[]}'),
      rawRequest('GET', '/v1/events', headers),
      rawRequest('GET', '/v1/download', headers),
      // Node itself listens for errors of the socket of any other request.
      ...Array<string>(4).fill(rawRequest('GET', '/v1/socket', { ...headers, ...WEBSOCKET })),
    ]);
    for (let number = 0; number < 4; number++)
      requests.push(rawRequest('GET', '/v1/orders', { ...bound, DPoP: proof() }));
    requests.push(rawRequest('GET', '/v1/socket', { ...bound, ...WEBSOCKET, DPoP: proof() }));
    await storm({ port, connections: CONNECTIONS, requests, seed });

    const statuses = [token(), 'active_till_2'].map(async (raw) => {
      const headers = { Authorization: `Bearer ${raw}` };
      return (await fetch(`http://127.0.0.1:${port}/v1/orders`, { headers })).status;
    });
    expect(await Promise.all(statuses)).toEqual([200, 200]);
    const headers = { ...bound, DPoP: proof() };
    expect((await fetch(`http://127.0.0.1:${port}/v1/orders`, { headers })).status).toBe(200);
    expect(children.map(({ exitCode, signalCode }) => exitCode ?? signalCode)).toEqual([null, null]);
  });
});

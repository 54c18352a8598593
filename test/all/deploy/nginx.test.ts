import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { token } from '../../support/issuer';
import { keyServer } from '../../support/key-server';
import type { KeyServer } from '../../support/key-server';
import { testKey } from '../../support/keys';
import { sendRaw } from '../../support/raw-request';
import { startNginx } from '../nginx/nginx-server';
import type { NginxServer } from '../nginx/nginx-server';
import { startTillgate } from '../setup/tillgate';
import type { RunningTillgate } from '../setup/tillgate';
import { eventually } from '../support/eventually';
import { freePort } from '../support/free-port';
import { busy, shoot, statuses } from '../support/load';

const AUDIENCE = 'https://api.example.com';
const CONFIGURATION = readFileSync(join(__dirname, '../../../deploy/nginx/tillgate.conf'), 'utf8');

let issuer: KeyServer;
let ports: readonly [number, number];
let apis: RunningTillgate<unknown>[] = [];
let nginx: NginxServer;
let authorization: string;

beforeAll(async () => {
  issuer = await keyServer(testKey());
  ports = [await freePort(), await freePort()];
  apis = await Promise.all(ports.map(startApi));
  nginx = await startNginx(CONFIGURATION, '8080', {
    'server api-1:3000 ': `server 127.0.0.1:${ports[0]} `,
    'server api-2:3000 ': `server 127.0.0.1:${ports[1]} `,
  });
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: issuer.origin, aud: AUDIENCE, iat: now - 60, exp: now + 3_600, generation: now * 1000 };
  authorization = `Bearer ${token({ claims })}`;
});

afterAll(async () => {
  await Promise.all([nginx?.stop(), issuer?.stop(), ...apis.map((api) => api.stop())]);
});

async function startApi(port: number): Promise<RunningTillgate<unknown>> {
  const api = await startTillgate('serve', {
    TILLGATE_PORT: String(port),
    TILLGATE_AUTH_URL: issuer.origin,
    TILLGATE_AUDIENCE: AUDIENCE,
    TILLGATE_RATE_LIMIT: 'off',
  });
  const ready = { url: `http://127.0.0.1:${port}/readyz` };
  await eventually('the API is ready', async () => (await shoot(ready)).status === 200);
  return api;
}

/** Statuses that an API itself and nginx respond with. */
async function bothStatuses(...lines: readonly string[]): Promise<readonly number[]> {
  const responses = await Promise.all([ports[0], nginx.port].map((port) => sendRaw(port, lines)));
  return responses.map(({ status }) => status);
}

describe('deploy/nginx/tillgate.conf, as it is, before two tillgate serve', () => {
  it.each([
    ['/v1/orders', 200],
    ['/V1/Orders/', 200],
    ['/v1/orders?limit=1', 200],
    ['/v1//orders', 404],
    ['//v1/orders', 404],
    ['/v1/%6frders', 404],
    ['/%761/orders', 404],
    ['/v1%2forders', 404],
    // One segment: the id is refused, with the slash in it.
    ['/v1/orders/a%2Fb', 400],
    ['/v1/orders/..%2fitems', 400],
    ['/v1/./orders', 404],
    ['/v1/items/../orders', 404],
    ['/livez/../v1/orders', 404],
    ['/v1orders', 404],
    ['/.well-known/oauth-protected-resource', 200],
    ['/problems/invalid_token', 200],
  ])('%s is the same request as without nginx', async (path, status) => {
    expect(await bothStatuses(`GET ${path} HTTP/1.1`, `Authorization: ${authorization}`)).toEqual([status, status]);
  });

  it.each([
    '/livez',
    '/readyz',
    '/LiveZ/',
    '/%6civez',
    '//livez',
    '/livez//',
    '/v1/../livez',
    '/./readyz',
    '/livez?a=/v1/',
  ])('%s is not for the public', async (path) => {
    expect((await sendRaw(nginx.port, [`GET ${path} HTTP/1.1`])).status).toBe(404);
  });

  it.each([
    ['Authorization: Bearer another', 'nginx', {}],
    ['X Till: 1', 'nginx', {}],
    ['Content-Length: many', 'nginx', {}],
    ['X(Till): 1', 'the API', { code: 'invalid_request' }],
    ['X-Till: a\u0001b', 'the API', { code: 'invalid_request' }],
  ])('a request with the header %j is the 400 of %s', async (header, _who, body) => {
    const head = ['GET /v1/orders HTTP/1.1', `Authorization: ${authorization}`, header];
    expect(await sendRaw(nginx.port, head)).toMatchObject({ status: 400, body });
    expect(await sendRaw(ports[0], head)).toMatchObject({ status: 400, body: { code: expect.any(String) as string } });
  });

  it('a head above 16 KiB is the 431 of the API; a header above 32 KiB is the 400 of nginx', async () => {
    const large = (length: number) => sendRaw(nginx.port, ['GET /v1/orders HTTP/1.1', `X-Till: ${'a'.repeat(length)}`]);
    expect(await large(12_000)).toMatchObject({ status: 401 });
    expect(await large(17_000)).toMatchObject({ status: 431, body: { code: 'request_header_fields_too_large' } });
    expect(await large(40_000)).toMatchObject({ status: 400, body: {} });
  });

  it('loses no request while the two are restarted, one after the other', async () => {
    const load = busy(8, () => ({ url: `http://127.0.0.1:${nginx.port}/v1/orders`, headers: { authorization } }));
    await eventually('both have had requests', () => apis.every((api) => api.log().includes('"status":200')));
    for (const [index, port] of ports.entries()) {
      await apis[index]?.stop();
      apis[index] = await startApi(port);
    }
    await eventually('1,000 requests, some of them to the new processes', () => {
      return load.completed >= 1_000 && apis.every((api) => api.log().includes('"status":200'));
    });
    const outcomes = await load.stop();
    expect(statuses(outcomes)).toEqual({ 200: outcomes.length });
    // All but the first of each connection, and those after which nginx closes one: `keepalive_requests`.
    expect(outcomes.filter(({ reused }) => !reused).length).toBeLessThan(8 + (8 * outcomes.length) / 1_000 + 1);
  });
});

import express from 'express';
import request from 'supertest';
import { rawServer } from '../../support/raw-request';
import { closeAll, from, registerClient, startServer } from './fixtures';
import type { TestServer } from './fixtures';

const GUARDED = ['/clients', '/clients/pos-17', '/generations', '/clients/nobody'];
const ADMIN_TOKEN = 'correct-horse-battery';

let server: TestServer;
afterAll(closeAll);

describe('the admin guard without an admin token', () => {
  beforeAll(async () => {
    server = await startServer();
    await registerClient(server);
  });

  const HERE = ['127.0.0.1', 'localhost', '[::1]', 'LOCALHOST:4000'].map((host) => ['Host', host]);
  const PAGES = ['same-origin', 'none'].map((site) => ['Sec-Fetch-Site', site]);
  const NO_PROXY = [
    ...['X-Trivia', 'Via-Region', 'Not-Forwarded', 'Forwarded-By', 'X-Real-IP-Hash', 'X-Forwardedly', 'X-Client-Id'],
  ].map((name) => [name, '1']);
  it.each([...HERE, ...PAGES, ...NO_PROXY])('accepts %s: %s', async (name, value) => {
    expect((await server.get('/clients').set(name, value)).status).toBe(200);
  });

  const PAGE = 'Pages of another origin may not use this API: call it from a program, or set TILLGATE_ADMIN_TOKEN.';
  const HOST = 'The Host header must name this machine, such as 127.0.0.1 or localhost.';
  const PROXY =
    'Requests through a proxy (or by HTTP/1.0, as proxies send them) need an admin token: set TILLGATE_ADMIN_TOKEN.';

  // A page of another name could resolve to 127.0.0.1 (DNS rebinding).
  const ELSEWHERE = [
    ...['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', '169.254.169.254', '10.0.0.1:4000', '::1'],
    // Unlike `localhost` itself, its subdomains may be resolved by DNS (RFC 6761 section 6.3 is not followed everywhere).
    ...['a b', 'tillgate.localhost:4000'],
  ].map((host) => ['Host', host, HOST]);
  const SITES = ['cross-site', 'same-site', 'anything'].map((site) => ['Sec-Fetch-Site', site, PAGE]);
  const ORIGINS = ['http://evil.example', 'null', 'http://127.0.0.1:1', 'http://localhost'];
  const PROXY_HEADERS = [
    ...['Forwarded', 'X-Forwarded', 'X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Anything', 'X-Real-IP', 'Via'],
    ...['X-Client-IP', 'X-Cluster-Client-IP', 'X-Original-For', 'X-Original-Host', 'X-Envoy-External-Address'],
    ...['X-Envoy-Attempt-Count', 'CF-Connecting-IP', 'CF-Connecting-IPv6', 'CDN-Loop', 'True-Client-IP'],
    ...['Fastly-Client-IP', 'Fly-Client-IP', 'X-Azure-ClientIP', 'X-Amzn-Trace-Id', 'X-AppEngine-User-IP'],
  ].map((name) => [name, '127.0.0.1', PROXY]);
  it.each([
    ...ELSEWHERE,
    ...SITES,
    ...ORIGINS.map((origin) => ['Origin', origin, PAGE]),
    ...PROXY_HEADERS,
    ['X-Forwarded-Anything', '', PROXY],
  ])('refuses %s: %s', async (name, value, detail) => {
    for (const path of GUARDED) {
      const { status, body } = await server.get(path).set(name, value);
      expect([status, body.code, body.detail]).toEqual([403, 'forbidden', detail]);
    }
  });

  it('makes no change that it refuses', async () => {
    expect((await server.post('/clients/pos-17/revoke').set('Origin', 'http://evil.example')).status).toBe(403);
    const { generation, created_at } = (await server.get('/clients/pos-17')).body;
    expect(generation).toBe(Date.parse(created_at));
  });

  it('accepts pages of its own origin, and refuses those that only begin or end like it', async () => {
    const { url } = server;
    const statusOf = async (origin: string) => (await server.get('/clients').set('Origin', origin)).status;
    for (const origin of [url, url.replace('http:', 'https:')]) expect(await statusOf(origin)).toBe(200);
    const others = [`${url}0`, `${url}.evil.example`, `${url}/`, url.slice(0, -1), url.replace('http:', 'ftp:')];
    for (const origin of others) expect([origin, await statusOf(origin)]).toEqual([origin, 403]);
  });

  it.each(['192.0.2.7', '::ffff:192.0.2.7', '2001:db8::7', undefined])('refuses a caller at %s', async (address) => {
    const { status, body } = await request(from(server, address)).get('/clients').set('Host', 'localhost');
    const detail = 'Without an admin token only this machine may call these URLs: set TILLGATE_ADMIN_TOKEN.';
    expect([status, body.detail]).toEqual([403, detail]);
  });

  it.each(['127.0.0.1', '127.8.8.8', '::1', '::ffff:127.0.0.1'])('accepts a caller at %s', async (address) => {
    expect((await request(from(server, address)).get('/clients').set('Host', 'localhost')).status).toBe(200);
  });

  it('refuses HTTP/1.0, which nginx speaks to its upstream unless told otherwise', async () => {
    const raw = await rawServer(express().use(server.auth.handler));
    const statusOf = async (path: string, version: string): Promise<number> =>
      (await raw.send([`GET ${path} HTTP/${version}`, 'Host: 127.0.0.1'])).status;
    expect(await statusOf('/clients', '1.0')).toBe(403);
    expect(await statusOf('/clients', '1.1')).toBe(200);
    expect(await statusOf('/.well-known/openid-configuration', '1.0')).toBe(200);
    await raw.close();
  });
});

describe('the admin guard with an admin token', () => {
  beforeAll(async () => {
    server = await startServer({ adminToken: ADMIN_TOKEN, host: '0.0.0.0' });
  });

  const NONE = [{}, 'missing_token', 'Bearer realm="admin"'] as const;
  const OTHERS = [`Basic ${ADMIN_TOKEN}`, `xBearer ${ADMIN_TOKEN}`, `Bearer ${ADMIN_TOKEN} x`, ADMIN_TOKEN, 'Bearer'];
  const WRONG = ['Bearer correct-horse-batter', 'Bearer correct-horse-battery2', 'Bearer x'];
  it.each([
    NONE,
    ...OTHERS.map((authorization) => [{ authorization }, NONE[1], NONE[2]] as const),
    ...WRONG.map((authorization) => [{ authorization }, 'invalid_token', `${NONE[2]}, error="invalid_token"`] as const),
  ])('refuses %j: %s', async (header, code, challenge) => {
    for (const path of GUARDED) {
      const { headers, body, text } = await server.get(path).set(header);
      const detail = 'Send the admin token of the token server: Authorization: Bearer <TILLGATE_ADMIN_TOKEN>.';
      expect(body).toMatchObject({ status: 401, code, detail });
      expect(headers).toMatchObject({ 'www-authenticate': challenge, 'cache-control': 'no-store' });
      expect(text).not.toContain(ADMIN_TOKEN);
    }
  });

  it.each(['bearer', 'BEARER ', 'Bearer'])('accepts it in any case and after blanks: %j', async (scheme) => {
    expect((await server.get('/clients').set('Authorization', `${scheme} ${ADMIN_TOKEN}`)).status).toBe(200);
  });

  it('accepts it from any host, page and proxy', async () => {
    const foreign = { host: 'login.example', origin: 'https://x.example', via: '1.1 proxy' };
    const call = server.get('/clients').auth(ADMIN_TOKEN, { type: 'bearer' });
    expect((await call.set({ ...foreign, 'sec-fetch-site': 'cross-site' })).status).toBe(200);
  });

  it('leaves the endpoints of clients and resource servers open', async () => {
    const client = await registerClient(server);
    expect((await server.token(client).set('Host', 'login.example')).status).toBe(200);
    expect((await server.get('/.well-known/openid-configuration/jwks').set('Host', 'login.example')).status).toBe(200);
  });
});

describe('a page of another origin', () => {
  const PAGE = 'http://127.0.0.1:3000';
  const PREFLIGHT = { 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'authorization' };
  const ALLOWED = 'access-control-allow-origin';
  beforeAll(async () => {
    server = await startServer();
  });
  const preflight = (path: string) => request(server.url).options(path).set('Origin', PAGE).set(PREFLIGHT);

  it('may ask for tokens with Basic credentials, and reads refusals too', async () => {
    const { status, headers } = await preflight('/connect/token');
    expect(status).toBe(204);
    expect(headers).toMatchObject({
      [ALLOWED]: '*',
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': 'Authorization,Content-Type,X-Requested-With',
    });
    expect(headers).not.toHaveProperty('access-control-allow-credentials');
    const granted = await server.token(await registerClient(server)).set('Origin', PAGE);
    const refused = await server.form('/connect/token', {}).set('Origin', PAGE);
    expect([granted.status, granted.headers[ALLOWED]]).toEqual([200, '*']);
    expect([refused.status, refused.headers[ALLOWED]]).toEqual([400, '*']);
    // A page that is told to wait must be able to read how long.
    for (const each of [granted, refused]) expect(each.headers['access-control-expose-headers']).toBe('Retry-After');
  });

  it('may not use any other endpoint', async () => {
    const refused = await server.get('/clients').set('Origin', PAGE);
    expect(refused.status).toBe(403);
    expect(refused.headers).not.toHaveProperty(ALLOWED);
    expect((await preflight('/clients/pos-17')).headers).not.toHaveProperty(ALLOWED);
  });
});

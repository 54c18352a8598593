import { createServer } from 'node:http';
import express from 'express';
import request from 'supertest';
import { rawServer } from '../../support/raw-request';
import { closeAll, registerClient, startServer } from './fixtures';
import type { TestServer } from './fixtures';

afterAll(closeAll);

describe('the admin guard', () => {
  const GUARDED = ['/clients', '/clients/pos-17', '/generations', '/clients/nobody'];

  describe('without an admin token', () => {
    let server: TestServer;
    beforeAll(async () => {
      server = await startServer();
      await registerClient(server);
    });

    it.each(['127.0.0.1', 'localhost', '[::1]', 'LOCALHOST:4000'])('responds to Host %s', async (host) => {
      expect((await server.get('/clients').set('Host', host)).status).toBe(200);
    });

    it.each([
      'evil.example',
      'localhost.evil.example',
      // Unlike `localhost` itself, its subdomains may be resolved by DNS (RFC 6761 section 6.3 is not followed everywhere).
      'tillgate.localhost:4000',
      '127.0.0.1.evil.example',
      '169.254.169.254',
      '10.0.0.1:4000',
      '::1',
      'a b',
    ])('refuses Host %s: a page of that name could resolve to 127.0.0.1 (DNS rebinding)', async (host) => {
      for (const path of GUARDED) {
        const response = await server.get(path).set('Host', host);
        expect(response.status).toBe(403);
        expect(response.body).toMatchObject({
          code: 'forbidden',
          detail: 'The Host header must name this machine, such as 127.0.0.1 or localhost.',
        });
      }
    });

    it.each(['http://evil.example', 'null', 'http://127.0.0.1:1', 'http://localhost'])(
      'refuses pages of origin %s',
      async (origin) => {
        const response = await server.post('/clients/pos-17/revoke').set('Origin', origin);
        expect(response.status).toBe(403);
        expect(response.body.detail).toBe(
          'Pages of another origin may not use this API: call it from a program, or set TILLGATE_ADMIN_TOKEN.',
        );
        const { generation, created_at } = (await server.get('/clients/pos-17')).body;
        expect(generation).toBe(Date.parse(created_at));
      },
    );

    it('responds to pages of its own origin', async () => {
      expect((await server.get('/clients').set('Origin', server.url)).status).toBe(200);
    });

    it.each([
      ['192.0.2.7', 403],
      ['::ffff:192.0.2.7', 403],
      ['2001:db8::7', 403],
      [undefined, 403],
      ['127.0.0.1', 200],
      ['127.8.8.8', 200],
      ['::1', 200],
      ['::ffff:127.0.0.1', 200],
    ])('responds to a caller at %s with %i, for any Host', async (remoteAddress, status) => {
      const seenFrom = createServer((req, res) => {
        Object.defineProperty(req.socket, 'remoteAddress', { value: remoteAddress });
        server.auth.handler(req, res);
      });
      const response = await request(seenFrom).get('/clients').set('Host', 'localhost');
      expect(response.status).toBe(status);
      if (status === 403) {
        expect(response.body.detail).toBe(
          'Without an admin token only this machine may call these URLs: set TILLGATE_ADMIN_TOKEN.',
        );
      }
    });

    it.each([
      ['Forwarded', 'for=192.0.2.7'],
      ['X-Forwarded-For', '127.0.0.1'],
      ['X-Forwarded-Host', 'localhost'],
      ['X-Forwarded-Anything', ''],
      ['X-Real-IP', '127.0.0.1'],
      ['Via', '1.1 proxy'],
      ['X-Forwarded', 'for=192.0.2.7'],
      ['X-Client-IP', '192.0.2.7'],
      ['X-Cluster-Client-IP', '192.0.2.7'],
      ['X-Original-For', '192.0.2.7'],
      ['X-Original-Host', 'localhost'],
      ['X-Envoy-External-Address', '192.0.2.7'],
      ['X-Envoy-Attempt-Count', '1'],
      ['CF-Connecting-IP', '192.0.2.7'],
      ['CF-Connecting-IPv6', '2001:db8::7'],
      ['CDN-Loop', 'cloudflare'],
      ['True-Client-IP', '192.0.2.7'],
      ['Fastly-Client-IP', '192.0.2.7'],
      ['Fly-Client-IP', '192.0.2.7'],
      ['X-Azure-ClientIP', '192.0.2.7'],
      ['X-Amzn-Trace-Id', 'Root=1-67891233-abcdef012345678912345678'],
      ['X-AppEngine-User-IP', '192.0.2.7'],
    ])('refuses what came through a proxy: %s', async (name, value) => {
      for (const path of GUARDED) {
        const response = await server.get(path).set(name, value);
        expect({ status: response.status, detail: response.body.detail }).toEqual({
          status: 403,
          detail:
            'Requests through a proxy (or by HTTP/1.0, as proxies send them) need an admin token: set TILLGATE_ADMIN_TOKEN.',
        });
      }
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

    it.each([
      'X-Trivia',
      'Via-Region',
      'Not-Forwarded',
      'Forwarded-By',
      'X-Real-IP-Hash',
      'X-Forwardedly',
      'X-Client-Id',
    ])('takes %s for what it is: not a sign of a proxy', async (name) => {
      expect((await server.get('/clients').set(name, '1')).status).toBe(200);
    });

    it.each([
      ['cross-site', 403],
      ['same-site', 403],
      ['anything', 403],
      ['same-origin', 200],
      ['none', 200],
    ])('responds to Sec-Fetch-Site: %s with %i', async (site, status) => {
      expect((await server.get('/clients').set('Sec-Fetch-Site', site)).status).toBe(status);
    });

    it('refuses an Origin that only begins or ends like its own', async () => {
      for (const origin of [
        `${server.url}0`,
        `${server.url}.evil.example`,
        `${server.url}/`,
        server.url.slice(0, -1),
      ]) {
        expect([origin, (await server.get('/clients').set('Origin', origin)).status]).toEqual([origin, 403]);
      }
      expect((await server.get('/clients').set('Origin', server.url.replace('http:', 'https:'))).status).toBe(200);
      expect((await server.get('/clients').set('Origin', server.url.replace('http:', 'ftp:'))).status).toBe(403);
    });
  });

  describe('with an admin token', () => {
    const adminToken = 'correct-horse-battery';

    it.each(GUARDED)('asks for it at %s', async (path) => {
      const server = await startServer({ adminToken, host: '0.0.0.0' });
      const response = await server.get(path);
      expect(response.status).toBe(401);
      expect(response.headers['www-authenticate']).toBe('Bearer realm="admin"');
      expect(response.headers['cache-control']).toBe('no-store');
      expect(response.body).toMatchObject({ code: 'missing_token', status: 401 });
    });

    it.each(['Bearer correct-horse-batter', 'Bearer correct-horse-battery2', 'Bearer x'])(
      'refuses another one: %s',
      async (other) => {
        const server = await startServer({ adminToken });
        const response = await server.get('/clients').set('Authorization', other);
        expect(response.status).toBe(401);
        expect(response.headers['www-authenticate']).toBe('Bearer realm="admin", error="invalid_token"');
        expect(response.body.code).toBe('invalid_token');
        expect(response.text).not.toContain(adminToken);
      },
    );

    it.each([`Basic ${adminToken}`, `xBearer ${adminToken}`, `Bearer ${adminToken} x`, adminToken, 'Bearer'])(
      'does not take this for a token: %s',
      async (authorization) => {
        const server = await startServer({ adminToken });
        const response = await server.get('/clients').set('Authorization', authorization);
        expect(response.status).toBe(401);
        expect(response.body.code).toBe('missing_token');
        expect(response.body.detail).toBe(
          'Send the admin token of the token server: Authorization: Bearer <TILLGATE_ADMIN_TOKEN>.',
        );
      },
    );

    it.each(['bearer', 'BEARER ', 'Bearer'])('accepts it in any case and after blanks: %j', async (scheme) => {
      const server = await startServer({ adminToken });
      expect((await server.get('/clients').set('Authorization', `${scheme} ${adminToken}`)).status).toBe(200);
    });

    it('accepts it from any host, page and proxy', async () => {
      const server = await startServer({ adminToken });
      const response = await server
        .get('/clients')
        .auth(adminToken, { type: 'bearer' })
        .set({ host: 'login.example', origin: 'https://x.example', via: '1.1 proxy', 'sec-fetch-site': 'cross-site' });
      expect(response.status).toBe(200);
    });
  });

  it('leaves the endpoints of clients and resource servers open', async () => {
    const server = await startServer({ adminToken: 'correct-horse-battery' });
    const client = await registerClient(server);
    expect((await server.token(client).set('Host', 'login.example')).status).toBe(200);
    expect((await server.get('/.well-known/openid-configuration/jwks').set('Host', 'login.example')).status).toBe(200);
  });
});

describe('browsers', () => {
  const PAGE = 'http://127.0.0.1:3000';
  const PREFLIGHT = { 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'authorization' };
  const ALLOWED = 'access-control-allow-origin';

  it('a page may ask for tokens with Basic credentials', async () => {
    const server = await startServer();
    const preflight = await request(server.url).options('/connect/token').set('Origin', PAGE).set(PREFLIGHT);
    expect(preflight.status).toBe(204);
    expect(preflight.headers).toMatchObject({
      [ALLOWED]: '*',
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': 'Authorization,Content-Type,X-Requested-With',
    });
    expect(preflight.headers).not.toHaveProperty('access-control-allow-credentials');
    const client = await registerClient(server);
    const response = await server.token(client).set('Origin', PAGE);
    expect(response.status).toBe(200);
    expect(response.headers).toMatchObject({ [ALLOWED]: '*' });
  });

  it('it reads refusals too', async () => {
    const server = await startServer();
    const response = await request(server.url).post('/connect/token').type('form').send({}).set('Origin', PAGE);
    expect(response.headers[ALLOWED]).toBe('*');
    expect(response.status).toBe(400);
  });

  it('it may not use any other endpoint', async () => {
    const server = await startServer();
    await registerClient(server);
    const refused = await server.get('/clients').set('Origin', PAGE);
    expect(refused.status).toBe(403);
    expect(refused.headers).not.toHaveProperty(ALLOWED);
    const preflight = await request(server.url).options('/clients/pos-17').set('Origin', PAGE).set(PREFLIGHT);
    expect(preflight.headers).not.toHaveProperty(ALLOWED);
  });
});

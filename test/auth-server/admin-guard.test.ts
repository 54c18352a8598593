import { createServer } from 'node:http';
import request from 'supertest';
import { closeAll, registerClient, startServer } from './fixtures';

afterEach(closeAll);

const GUARDED = [
  '/clients',
  '/clients/pos-17',
  '/generations',
  '/generations/stream',
  '/keys/rotate',
  '/clients/nobody',
];

describe('without an admin token', () => {
  it.each(['127.0.0.1', 'localhost', '[::1]', 'LOCALHOST:4000'])('responds to Host %s', async (host) => {
    const server = await startServer();
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
    const server = await startServer();
    await registerClient(server);
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
      const server = await startServer();
      await registerClient(server);
      const response = await server.post('/clients/pos-17/revoke').set('Origin', origin);
      expect(response.status).toBe(403);
      expect(response.body.detail).toBe(
        'Pages of another origin may not use this API: call it from a program, or set TILLGATE_ADMIN_TOKEN.',
      );
      expect((await server.get('/clients/pos-17')).body.version).toBe(1);
    },
  );

  it('responds to pages of its own origin', async () => {
    const server = await startServer();
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
    const server = await startServer();
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
  ])('refuses what came through a proxy: %s', async (name, value) => {
    const server = await startServer();
    await registerClient(server);
    for (const path of GUARDED) {
      const response = await server.get(path).set(name, value);
      expect({ status: response.status, detail: response.body.detail }).toEqual({
        status: 403,
        detail: 'Requests that came through a proxy need an admin token: set TILLGATE_ADMIN_TOKEN.',
      });
    }
  });

  it.each(['X-Trivia', 'Via-Region', 'Not-Forwarded', 'Forwarded-By', 'X-Real-IP-Hash'])(
    'takes %s for what it is: not a sign of a proxy',
    async (name) => {
      const server = await startServer();
      expect((await server.get('/clients').set(name, '1')).status).toBe(200);
    },
  );

  it.each([
    ['cross-site', 403],
    ['same-site', 403],
    ['anything', 403],
    ['same-origin', 200],
    ['none', 200],
  ])('responds to Sec-Fetch-Site: %s with %i', async (site, status) => {
    const server = await startServer();
    expect((await server.get('/clients').set('Sec-Fetch-Site', site)).status).toBe(status);
  });

  it('refuses an Origin that only begins or ends like its own', async () => {
    const server = await startServer();
    for (const origin of [`${server.url}0`, `${server.url}.evil.example`, `${server.url}/`, server.url.slice(0, -1)]) {
      expect([origin, (await server.get('/clients').set('Origin', origin)).status]).toEqual([origin, 403]);
    }
    expect((await server.get('/clients').set('Origin', server.url.replace('http:', 'https:'))).status).toBe(200);
    expect((await server.get('/clients').set('Origin', server.url.replace('http:', 'ftp:'))).status).toBe(403);
  });
});

describe('with an admin token', () => {
  const adminToken = 'correct-horse';

  it.each(GUARDED)('asks for it at %s', async (path) => {
    const server = await startServer({ adminToken, host: '0.0.0.0' });
    const response = await server.get(path);
    expect(response.status).toBe(401);
    expect(response.headers['www-authenticate']).toBe('Bearer realm="admin"');
    expect(response.headers['cache-control']).toBe('no-store');
    expect(response.body).toMatchObject({ code: 'missing_token', status: 401 });
  });

  it.each(['Bearer correct-hors', 'Bearer correct-horse2', 'Bearer x'])('refuses another one: %s', async (other) => {
    const server = await startServer({ adminToken });
    const response = await server.get('/clients').set('Authorization', other);
    expect(response.status).toBe(401);
    expect(response.headers['www-authenticate']).toBe('Bearer realm="admin", error="invalid_token"');
    expect(response.body.code).toBe('invalid_token');
    expect(response.text).not.toContain(adminToken);
  });

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
  const server = await startServer({ adminToken: 'x' });
  const client = await registerClient(server);
  expect((await server.token(client).set('Host', 'login.example')).status).toBe(200);
  expect((await server.get('/.well-known/openid-configuration/jwks').set('Host', 'login.example')).status).toBe(200);
});

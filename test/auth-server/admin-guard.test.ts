import { networkInterfaces } from 'node:os';
import type { AddressInfo } from 'node:net';
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
  it.each(['127.0.0.1', 'localhost', '[::1]', 'LOCALHOST:4000', 'tillgate.localhost:4000'])(
    'answers to Host %s',
    async (host) => {
      const server = await startServer();
      expect((await server.get('/clients').set('Host', host)).status).toBe(200);
    },
  );

  it.each([
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '169.254.169.254',
    '10.0.0.1:4000',
    '::1',
    'a b',
  ])('refuses Host %s, as DNS rebinding has it', async (host) => {
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
      expect((await server.get('/clients/pos-17')).body.version).toBe(1);
    },
  );

  it('answers to pages of its own origin', async () => {
    const server = await startServer();
    expect((await server.get('/clients').set('Origin', server.url)).status).toBe(200);
  });

  it('answers to no other machine, whatever Host says', async () => {
    const address = Object.values(networkInterfaces())
      .flat()
      .find((entry) => entry?.family === 'IPv4' && !entry.internal)?.address;
    // A machine without a network has no other address to come from.
    if (address === undefined) return;
    const server = await startServer();
    const outside = createServer(server.auth.handler);
    await new Promise<void>((resolve) => outside.listen(0, address, resolve));
    const response = await request(`http://${address}:${(outside.address() as AddressInfo).port}`)
      .get('/clients')
      .set('Host', 'localhost');
    await new Promise((resolve) => outside.close(resolve));
    expect(response.status).toBe(403);
    expect(response.body.detail).toBe(
      'Without an admin token these addresses answer to this machine only: set TILLGATE_ADMIN_TOKEN.',
    );
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

  it.each(['correct-hors', 'correct-horse2', 'x'])('refuses another one: %s', async (other) => {
    const server = await startServer({ adminToken });
    const response = await server.get('/clients').auth(other, { type: 'bearer' });
    expect(response.status).toBe(401);
    expect(response.headers['www-authenticate']).toBe('Bearer realm="admin", error="invalid_token"');
    expect(response.body.code).toBe('invalid_token');
    expect(response.text).not.toContain(adminToken);
  });

  it('takes it from any host and any page', async () => {
    const server = await startServer({ adminToken });
    const response = await server
      .get('/clients')
      .auth(adminToken, { type: 'bearer' })
      .set({ host: 'login.example', origin: 'https://x.example' });
    expect(response.status).toBe(200);
  });
});

it('leaves the addresses of clients and resource servers open', async () => {
  const server = await startServer({ adminToken: 'x' });
  const client = await registerClient(server);
  expect((await server.token(client).set('Host', 'login.example')).status).toBe(200);
  expect((await server.get('/.well-known/openid-configuration/jwks').set('Host', 'login.example')).status).toBe(200);
});

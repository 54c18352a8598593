import { basic, closeAll, registerClient, startServer } from './fixtures';

afterEach(closeAll);

const rateLimit = { limit: 2, windowMs: 60_000 };

it('limits per client id, good requests and bad ones, and says so as RFC 6749 errors are', async () => {
  const server = await startServer({ rateLimit });
  const client = await registerClient(server);
  const other = await registerClient(server, { client_id: 'kiosk' });
  const first = await server.token(client);
  expect(first.status).toBe(200);
  expect(first.headers['ratelimit-policy']).toMatch(/^"token"; q=2; w=60/);
  expect(first.headers['ratelimit']).toMatch(/^"token"; r=1; t=\d+/);
  expect((await server.token(client, { client_secret: 'wrong' })).status).toBe(401);

  const limited = await server.token(client);
  expect(limited.status).toBe(429);
  expect(limited.body).toEqual({
    error: 'temporarily_unavailable',
    error_description: 'No more than 2 token requests per 60 s.',
  });
  expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0);
  expect(limited.headers['cache-control']).toBe('no-store');
  expect((await server.token(other)).status).toBe(200);
});

it('counts an id the same in Basic and in the body', async () => {
  const server = await startServer({ rateLimit });
  const client = await registerClient(server);
  const form = 'grant_type=client_credentials&scope=orders:read';
  const credentials = basic('pos-17', client.client_secret);
  const send = () => server.post('/connect/token').type('form').send(form).set('Authorization', credentials);
  expect((await send()).status).toBe(200);
  expect((await server.token(client)).status).toBe(200);
  expect((await send()).status).toBe(429);
});

it('believes no X-Forwarded-For', async () => {
  const server = await startServer({ rateLimit });
  const client = await registerClient(server);
  const statuses: number[] = [];
  for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.3']) {
    statuses.push((await server.token(client).set('X-Forwarded-For', address)).status);
  }
  expect(statuses).toEqual([200, 200, 429]);
});

it('says nothing where it is off', async () => {
  const server = await startServer({ rateLimit: false });
  const client = await registerClient(server);
  const { headers } = await server.token(client);
  expect(headers).not.toHaveProperty('ratelimit');
});

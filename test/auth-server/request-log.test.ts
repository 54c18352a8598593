import request from 'supertest';
import { closeAll, registerClient, startServer } from './fixtures';
import type { TestServer } from './fixtures';

afterAll(closeAll);

/** The requests in the log, without their duration. */
function logged({ log }: TestServer): unknown[] {
  const requests = log.entries.filter(({ message }) => message === 'token server request');
  return requests.map(({ level, fields }) => {
    const { duration_ms: _, ...rest } = fields;
    return { level, ...JSON.parse(JSON.stringify(rest)) } as unknown;
  });
}

describe('the log of the token server', () => {
  it('has a line for each request, with the registered client and why it was refused', async () => {
    const server = await startServer();
    const client = await registerClient(server);
    await server.token(client);
    await server.token(client, { client_secret: 'wrong' });
    await server.token(client, { client_id: 'never-registered' });
    await server.token(client, { scope: 'items:read' });
    await request(server.url).post('/connect/token').type('form').send({ grant_type: 'client_credentials' });
    await server.patch('/clients/pos-17', { disabled: true });
    await server.token(client);
    await server.get('/nothing?client_secret=x');

    const token = { level: 'info', method: 'POST', path: '/connect/token' };
    const refused = { ...token, status: 401, error: 'invalid_client' };
    expect(logged(server)).toEqual([
      { ...token, status: 200, client_id: 'pos-17' },
      { ...refused, client_id: 'pos-17', detail: 'wrong secret' },
      { ...refused, detail: 'no client has this id' },
      {
        ...{ ...token, status: 400, client_id: 'pos-17', error: 'invalid_scope' },
        detail: 'The client is not registered with one of the scopes: it has orders:read orders:write.',
      },
      { ...refused, detail: 'no client id and secret' },
      { level: 'info', method: 'PATCH', path: '/clients/pos-17', status: 200 },
      { ...refused, client_id: 'pos-17', detail: 'disabled' },
      { level: 'info', method: 'GET', path: '/nothing', status: 404, error: 'not_found' },
    ]);
  });

  it('holds no secret, token or body, wherever they were sent', async () => {
    const server = await startServer();
    const client = await registerClient(server);
    const token = await server.accessToken(client);
    const { client_secret: secret } = client;
    await server.token(client, { client_id: secret });
    await server.token(client, { client_id: secret, grant_type: 'password' });
    await server.token(client, { scope: secret });
    await server.token(client, { [secret]: 'x' });
    await server.get(`/clients/${secret}`);
    await server.get(`/${token}?access_token=${token}`);
    await server.post('/clients', { client_id: secret, scope: secret });
    await server.introspect(client, token);

    expect(logged(server)).toHaveLength(9);
    const text = JSON.stringify(server.log.entries);
    expect(text).not.toContain(secret);
    expect(text).not.toContain(token.split('.')[1]);
  });

  it('leaves out what resource servers read again and again, unless it fails', async () => {
    const server = await startServer({ adminToken: 'admin-admin-admin' });
    await server.get('/.well-known/openid-configuration/jwks');
    await server.get('/generations?after=0').set('Authorization', 'Bearer admin-admin-admin');
    await server.get('/generations?after=0');

    expect(logged(server)).toEqual([
      { level: 'info', method: 'GET', path: '/generations', status: 401, error: 'missing_token' },
    ]);
  });
});

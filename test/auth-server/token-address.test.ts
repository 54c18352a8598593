import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';
import express from 'express';
import type { Express } from 'express';
import helmet from 'helmet';
import request from 'supertest';
import type { Test } from 'supertest';
import { closeAll, registerClient, startServer } from './fixtures';
import type { TestServer } from './fixtures';

afterEach(closeAll);

/** A good token request at an address. */
async function ask(server: TestServer, app: string | Express, address: string): Promise<Test> {
  const { client_secret } = await registerClient(server);
  const form = { grant_type: 'client_credentials', client_id: 'pos-17', client_secret, scope: 'orders:read' };
  return request(app).post(address).type('form').send(form);
}

describe('the token endpoint', () => {
  it.each(['/connect/token', '/connect/token/', '/Connect/TOKEN', '/connect/token?', '/connect/token?audience=x'])(
    'responds at %s',
    async (address) => {
      const server = await startServer();
      const response = await ask(server, server.url, address);
      expect(response.status).toBe(200);
      expect(response.headers['cache-control']).toBe('no-store');
    },
  );

  it.each(['/connect/token', '/tenant/connect/token', '/tenant/connect/token/'])(
    'of an issuer with a path responds at %s',
    async (address) => {
      const server = await startServer({ issuer: 'http://login.test/tenant' });
      expect((await ask(server, server.url, address)).status).toBe(200);
    },
  );

  it('is nowhere else', async () => {
    const server = await startServer();
    const response = await ask(server, server.url, '/tenant/connect/token');
    expect(response.status).toBe(404);
    expect(response.body.code).toBe('not_found');
  });

  it('responds inside another Express app', async () => {
    const server = await startServer();
    const app = express().use('/login', server.auth.handler);
    expect((await ask(server, app, '/login/connect/token')).status).toBe(200);
  });

  it('counts by the address that the Express app around it believes', async () => {
    const server = await startServer({ rateLimit: { limit: 1, windowMs: 60_000 } });
    const app = express().set('trust proxy', true).use(server.auth.handler);
    const client = await registerClient(server);
    const statuses: number[] = [];
    for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.1']) {
      const form = { grant_type: 'client_credentials', scope: 'orders:read', ...pick(client) };
      const response = await request(app)
        .post('/connect/token')
        .set('X-Forwarded-For', address)
        .type('form')
        .send(form);
      statuses.push(response.status);
    }
    expect(statuses).toEqual([200, 200, 429]);
  });

  it('takes a compressed form', async () => {
    const server = await startServer();
    const client = await registerClient(server);
    const form = new URLSearchParams({ grant_type: 'client_credentials', scope: 'orders:read', ...pick(client) });
    const response = await fetch(`${server.url}/connect/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'content-encoding': 'gzip' },
      body: gzipSync(form.toString()),
    });
    expect(response.status).toBe(200);
  });
});

it.each(['/connect/token', '/connect/introspect', '/clients', '/nowhere'])(
  "has helmet's headers on the responses of %s",
  async (address) => {
    const server = await startServer();
    const expected = await helmetHeaders();
    const { headers } = await server.get(address);
    expect(headers).toMatchObject(expected);
    expect(headers).not.toHaveProperty('x-powered-by');
  },
);

function pick({ client_id, client_secret }: { readonly client_id: string; readonly client_secret: string }) {
  return { client_id, client_secret };
}

/** What helmet itself sets on a response. */
async function helmetHeaders(): Promise<Record<string, string>> {
  const set = helmet();
  const server = createServer((req, res) => set(req, res, () => res.end(JSON.stringify(res.getHeaders()))));
  const { text } = await request(server).get('/');
  return JSON.parse(text) as Record<string, string>;
}

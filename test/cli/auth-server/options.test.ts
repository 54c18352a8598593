import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';
import request from 'supertest';
import type { Test } from 'supertest';
import express from 'express';
import type { Express } from 'express';
import helmet from 'helmet';
import { createAuthServer } from '../../../src/cli/auth-server';
import type { AuthServerOptions } from '../../../src/cli/auth-server';
import { recordingLogger } from '../../support/log';
import { closeAll, decode, newDirectory, registerClient, startServer } from './fixtures';
import type { TestServer } from './fixtures';

afterEach(closeAll);

describe('options', () => {
  describe('createAuthServer() refuses wrong options before it touches the disk', () => {
    it.each<[object, string]>([
      [{ ratelimit: false }, 'unknown option "ratelimit"; did you mean "rateLimit"?'],
      [{ isuer: 'x' }, 'unknown option "isuer"; did you mean "issuer"?'],
      [
        { issuer: undefined },
        'option "issuer" must be an http: or https: URL without query and fragment, got undefined',
      ],
      [
        { issuer: 'login.test' },
        'option "issuer" must be an http: or https: URL without query and fragment, got "login.test"',
      ],
      [
        { issuer: 'http://login.test?x' },
        'option "issuer" must be an http: or https: URL without query and fragment, got "http://login.test/"',
      ],
      [{ audience: '' }, 'option "audience" must be a non-empty string, got ""'],
      [{ dataDir: undefined }, 'option "dataDir" must be the path of a directory, got undefined'],
      [
        { scopes: [] },
        'option "scopes" must be an array of one or more scope names, such as "orders:read", got an empty array',
      ],
      [
        { scopes: ['a b'] },
        'option "scopes" must be an array of one or more scope names, such as "orders:read", got an array of 1',
      ],
      [
        { tokenLifetimeSeconds: 0 },
        'option "tokenLifetimeSeconds" must be a whole number of seconds from 1 to 86400, got 0',
      ],
      [
        { rateLimit: true },
        'option "rateLimit" must be { limit, windowMs }, both whole numbers from 1, or false, got true',
      ],
      [
        { rateLimit: { limit: 0, windowMs: 1 } },
        'option "rateLimit" must be { limit, windowMs }, both whole numbers from 1, or false, got an object',
      ],
      [{ adminToken: '7' }, 'option "adminToken" must be 16 or more characters of printable ASCII without blanks'],
      [
        { adminToken: 'fifteen-letters' },
        'option "adminToken" must be 16 or more characters of printable ASCII without blanks',
      ],
      [
        { adminToken: 'sixteen letters ' },
        'option "adminToken" must be 16 or more characters of printable ASCII without blanks',
      ],
      [
        { host: '0.0.0.0' },
        'option "host" must be a loopback address, such as 127.0.0.1, unless "adminToken" is set, got "0.0.0.0"',
      ],
    ])('%j', async (wrong, message) => {
      const dataDir = join(newDirectory(), 'data');
      const options = { issuer: 'http://login.test', audience: 'x', dataDir, ...wrong } as AuthServerOptions;
      const refusal = await createAuthServer(options).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(TypeError);
      expect((refusal as Error).message).toBe(`createAuthServer(): ${message}`);
      expect(existsSync(dataDir)).toBe(false);
    });
  });

  it('takes any lifetime that it is given', async () => {
    const server = await startServer({ tokenLifetimeSeconds: 60 });
    const { body } = await server.token(await registerClient(server));
    const { exp, iat } = decode(body.access_token).claims as { exp: number; iat: number };
    expect([body.expires_in, exp - iat]).toEqual([60, 60]);
  });

  it('registers by call as by POST, with the same refusals', async () => {
    const server = await startServer();
    await registerClient(server);
    await expect(registerClient(server)).rejects.toMatchObject({ code: 'client_exists', status: 409 });
    await expect(registerClient(server, { scope: 'nope' })).rejects.toMatchObject({
      code: 'invalid_request',
      status: 400,
    });
  });

  it('responds to an unexpected error with 500, exposes no detail, and logs it', async () => {
    let broken = false;
    const server = await startServer({
      clock() {
        if (broken) throw new Error('secret detail');
        return 1_800_000_000_000;
      },
    });
    const client = await registerClient(server);
    broken = true;
    const response = await server.token(client);
    expect(response.status).toBe(500);
    expect(response.body.code).toBe('internal_error');
    expect(response.headers['cache-control']).toBe('no-store');
    expect(response.text).not.toContain('secret detail');
    expect(JSON.stringify(server.log.at('error'))).toContain('secret detail');
  });

  it('refuses production', async () => {
    const before = process.env['NODE_ENV'];
    process.env['NODE_ENV'] = 'production';
    try {
      await expect(startServer()).rejects.toThrow(
        'the embedded token server is for development and refuses NODE_ENV=production; set TILLGATE_AUTH_URL to your authorization server',
      );
    } finally {
      process.env['NODE_ENV'] = before;
    }
  });

  it('options that are changed later change nothing', async () => {
    const scopes = ['orders:read', 'orders:write'];
    const rateLimit = { limit: 3, windowMs: 60_000 };
    const adminToken = 'correct-horse-battery';
    const options: { -readonly [Key in keyof AuthServerOptions]: AuthServerOptions[Key] } = {
      issuer: 'http://login.test',
      audience: 'http://api.test',
      dataDir: newDirectory(),
      scopes,
      rateLimit,
      adminToken,
      logger: recordingLogger(),
    };
    const auth = await createAuthServer(options);
    scopes.push('admin');
    Object.assign(rateLimit, { limit: 1000 });
    Object.assign(options, {
      issuer: 'http://evil.test',
      audience: 'http://evil.test',
      tokenLifetimeSeconds: 1,
      adminToken: 'another-token-of-mine',
    });

    const client = await auth.register({ client_id: 'till', scope: 'orders:read' });
    await expect(auth.register({ client_id: 'b', scope: 'admin' })).rejects.toMatchObject({ code: 'invalid_request' });
    const form = { grant_type: 'client_credentials', ...client, scope: 'orders:read' };
    const token = (): request.Test => request(auth.handler).post('/connect/token').type('form').send(form);
    const responses = [await token(), await token(), await token(), await token()];
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
    expect(decode(responses[0]!.body.access_token).claims).toMatchObject({
      iss: 'http://login.test',
      aud: 'http://api.test',
    });
    expect(responses[0]!.body.expires_in).toBe(3600);
    const list = (bearer: string): request.Test =>
      request(auth.handler).get('/clients').auth(bearer, { type: 'bearer' });
    expect([(await list(adminToken)).status, (await list('another-token-of-mine')).status]).toEqual([200, 401]);
    await auth.close();
  });
});

describe('addresses', () => {
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
});

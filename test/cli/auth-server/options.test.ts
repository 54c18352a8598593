import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';
import request from 'supertest';
import express from 'express';
import type { Express } from 'express';
import helmet from 'helmet';
import { createAuthServer } from '../../../src/cli/auth-server';
import type { AuthServerOptions } from '../../../src/cli/auth-server';
import { recordingLogger } from '../../support/log';
import { GRANT, closeAll, decode, newDirectory, registerClient, startServer } from './fixtures';
import type { TestServer } from './fixtures';

afterEach(closeAll);

describe('options', () => {
  const ISSUER = 'option "issuer" must be an http: or https: URL without query and fragment, got';
  const SCOPES = 'option "scopes" must be an array of one or more scope names, such as "orders:read", got';
  const LIMIT = 'option "rateLimit" must be { limit, windowMs }, both whole numbers from 1, or false, got';
  const LIFETIME = 'option "tokenLifetimeSeconds" must be a whole number of seconds from 1 to 86400, got';
  const TOKEN = 'option "adminToken" must be 16 or more characters of printable ASCII without blanks';
  const HOST = 'option "host" must be a loopback address, such as 127.0.0.1, unless "adminToken" is set, got';
  it.each<[object, string]>([
    [{ ratelimit: false }, 'unknown option "ratelimit"; did you mean "rateLimit"?'],
    [{ isuer: 'x' }, 'unknown option "isuer"; did you mean "issuer"?'],
    [{ issuer: undefined }, `${ISSUER} undefined`],
    [{ issuer: 'login.test' }, `${ISSUER} "login.test"`],
    [{ issuer: 'http://login.test?x' }, `${ISSUER} "http://login.test/"`],
    [{ audience: '' }, 'option "audience" must be a non-empty string, got ""'],
    [{ dataDir: undefined }, 'option "dataDir" must be the path of a directory, got undefined'],
    [{ scopes: [] }, `${SCOPES} an empty array`],
    [{ scopes: ['a b'] }, `${SCOPES} an array of 1`],
    [{ tokenLifetimeSeconds: 0 }, `${LIFETIME} 0`],
    [{ rateLimit: true }, `${LIMIT} true`],
    [{ rateLimit: { limit: 0, windowMs: 1 } }, `${LIMIT} an object`],
    [{ adminToken: '7' }, TOKEN],
    [{ adminToken: 'fifteen-letters' }, TOKEN],
    [{ adminToken: 'sixteen letters ' }, TOKEN],
    [{ host: '0.0.0.0' }, `${HOST} "0.0.0.0"`],
  ])('of createAuthServer() are refused before it touches the disk: %j', async (wrong, message) => {
    const dataDir = join(newDirectory(), 'data');
    const options = { issuer: 'http://login.test', audience: 'x', dataDir, ...wrong } as AuthServerOptions;
    await expect(createAuthServer(options)).rejects.toThrow(new TypeError(`createAuthServer(): ${message}`));
    expect(existsSync(dataDir)).toBe(false);
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
    const wrong = registerClient(server, { scope: 'nope' });
    await expect(wrong).rejects.toMatchObject({ code: 'invalid_request', status: 400 });
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
    const form = { ...client, ...GRANT };
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

describe('the token endpoint', () => {
  /** The status of a good token request to a path of the server, or of an app around it. */
  async function ask(server: TestServer, path: string, app: string | Express = server.url): Promise<number> {
    const { client_id, client_secret } = await registerClient(server);
    const form = { ...GRANT, client_id, client_secret };
    return (await request(app).post(path).type('form').send(form)).status;
  }

  it.each([...['/connect/token', '/connect/token/', '/Connect/TOKEN', '/connect/token?', '/connect/token?audience=x']])(
    'responds at %s',
    async (path) => {
      expect(await ask(await startServer(), path)).toBe(200);
    },
  );

  it.each(['/connect/token', '/tenant/connect/token', '/tenant/connect/token/'])(
    'of an issuer with a path responds at %s',
    async (path) => {
      expect(await ask(await startServer({ issuer: 'http://login.test/tenant' }), path)).toBe(200);
    },
  );

  it('is nowhere else', async () => {
    expect(await ask(await startServer(), '/tenant/connect/token')).toBe(404);
  });

  it('responds inside another Express app', async () => {
    const server = await startServer();
    expect(await ask(server, '/login/connect/token', express().use('/login', server.auth.handler))).toBe(200);
  });

  it('counts by the address that the Express app around it believes', async () => {
    const server = await startServer({ rateLimit: { limit: 1, windowMs: 60_000 } });
    const app = express().set('trust proxy', true).use(server.auth.handler);
    const { client_id, client_secret } = await registerClient(server);
    const statuses: number[] = [];
    for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.1']) {
      const call = request(app).post('/connect/token').set('X-Forwarded-For', address).type('form');
      statuses.push((await call.send({ ...GRANT, client_id, client_secret })).status);
    }
    expect(statuses).toEqual([200, 200, 429]);
  });

  it('takes a compressed form', async () => {
    const server = await startServer();
    const { client_id, client_secret } = await registerClient(server);
    const response = await fetch(`${server.url}/connect/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'content-encoding': 'gzip' },
      body: gzipSync(new URLSearchParams({ ...GRANT, client_id, client_secret }).toString()),
    });
    expect(response.status).toBe(200);
  });
});

describe('every response', () => {
  it("has helmet's headers, and does not reveal Express", async () => {
    const server = await startServer();
    const set = helmet();
    const bare = createServer((req, res) => set(req, res, () => res.end(JSON.stringify(res.getHeaders()))));
    const expected = JSON.parse((await request(bare).get('/')).text) as object;
    for (const path of ['/connect/token', '/connect/introspect', '/clients', '/nowhere']) {
      const { headers } = await server.get(path);
      expect(headers).toMatchObject(expected);
      expect(headers).not.toHaveProperty('x-powered-by');
    }
  });
});

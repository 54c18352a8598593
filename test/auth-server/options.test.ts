import { existsSync } from 'node:fs';
import { join } from 'node:path';
import request from 'supertest';
import { createAuthServer } from '../../src/auth-server';
import type { AuthServerOptions } from '../../src/auth-server';
import { recordingLogger } from '../support/log';
import { closeAll, decode, newDirectory, registerClient, startServer } from './fixtures';

afterEach(closeAll);

describe('createAuthServer() refuses wrong options before it touches the disk', () => {
  it.each<[object, string]>([
    [{ generations: {} }, 'unknown option "generations"; did you mean "generationSource"?'],
    [{ isuer: 'x' }, 'unknown option "isuer"; did you mean "issuer"?'],
    [{ issuer: undefined }, 'option "issuer" must be an http: or https: URL without query and fragment, got undefined'],
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
    [{ signingAlgorithm: 'HS256' }, 'option "signingAlgorithm" must be one of RS256, ES256, got "HS256"'],
    [
      { rateLimit: true },
      'option "rateLimit" must be { limit, windowMs }, both whole numbers from 1, or false, got true',
    ],
    [
      { rateLimit: { limit: 0, windowMs: 1 } },
      'option "rateLimit" must be { limit, windowMs }, both whole numbers from 1, or false, got an object',
    ],
    [
      { generationSource: { read() {} } },
      'option "generationSource" must be a source with append(), such as redisGenerations(), got an object',
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
    [
      { production: true },
      'the embedded token server is for development and refuses NODE_ENV=production; set TILLGATE_AUTH_URL to your authorization server',
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

it('options that are changed later change nothing', async () => {
  const scopes = ['orders:read', 'orders:write'];
  const browserOrigins = ['http://a.test'];
  const rateLimit = { limit: 3, windowMs: 60_000 };
  const adminToken = 'correct-horse-battery';
  const options: { -readonly [Key in keyof AuthServerOptions]: AuthServerOptions[Key] } = {
    issuer: 'http://login.test',
    audience: 'http://api.test',
    dataDir: newDirectory(),
    scopes,
    browserOrigins,
    rateLimit,
    adminToken,
    logger: recordingLogger(),
    signingAlgorithm: 'ES256',
  };
  const auth = await createAuthServer(options);
  scopes.push('admin');
  browserOrigins.push('http://b.test');
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
  const token = (): request.Test =>
    request(auth.handler).post('/connect/token').type('form').set('Origin', 'http://b.test').send(form);
  const responses = [await token(), await token(), await token(), await token()];
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
  expect(responses[0]!.headers).not.toHaveProperty('access-control-allow-origin');
  expect(decode(responses[0]!.body.access_token).claims).toMatchObject({
    iss: 'http://login.test',
    aud: 'http://api.test',
  });
  expect(responses[0]!.body.expires_in).toBe(3600);
  const list = (bearer: string): request.Test => request(auth.handler).get('/clients').auth(bearer, { type: 'bearer' });
  expect([(await list(adminToken)).status, (await list('another-token-of-mine')).status]).toEqual([200, 401]);
  await auth.close();
});

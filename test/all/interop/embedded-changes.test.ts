import { startEmbeddedServer } from './embedded-server';
import type { EmbeddedServer } from './embedded-server';
import { API, expectRefused, guardedApi } from './guarded-api';
import type { GuardedApi } from './guarded-api';
import { COMBINATIONS, METHODS, startOAuthClients } from './oauth-clients';
import type { Library, Method, OAuthClients } from './oauth-clients';

const CLIENT = 'pos-17';
const SCOPE = 'orders:read';

let clients: OAuthClients;
let server: EmbeddedServer;
let secret: string;
let api: GuardedApi;

beforeAll(async () => {
  clients = await startOAuthClients();
});

beforeEach(async () => {
  server = await startEmbeddedServer();
  secret = await server.register({ client_id: CLIENT, description: 'Till 17', scope: SCOPE });
  api = await guardedApi(server.issuer, { generationSource: server.generations });
});

afterEach(async () => {
  await api?.close();
  await server?.close();
});

afterAll(() => clients?.stop());

function credentials(method: Method): object {
  const { issuer, tokenEndpoint } = server;
  return { issuer, tokenEndpoint, clientId: CLIENT, secret, method };
}

async function fetchToken(library: Library = 'openid-client', method: Method = 'basic'): Promise<string> {
  const request = { ...credentials(method), parameters: { scope: SCOPE } };
  return (await clients.succeed<{ access_token: string }>(library, 'token', request)).access_token;
}

/** Has another library judge a token as an API guarded by it would (RFC 9068 section 4). */
function judge(accessToken: string): Promise<Record<string, unknown>> {
  return clients.succeed('oauth4webapi', 'validate', { issuer: server.issuer, audience: API, accessToken });
}

describe('a token of the embedded token server', () => {
  it('is good for an API that oauth4webapi guards', async () => {
    expect(await judge(await fetchToken())).toEqual({
      iss: server.issuer,
      aud: API,
      sub: CLIENT,
      client_id: CLIENT,
      scope: SCOPE,
      iat: expect.any(Number),
      exp: expect.any(Number),
      jti: expect.any(String),
      generation: expect.any(Number),
    });
  });

  it.each(METHODS)('is introspected by openid-client with %s credentials (RFC 7662)', async (method) => {
    const accessToken = await fetchToken();
    const question = { ...credentials(method), accessToken };
    expect(await clients.succeed('openid-client', 'introspect', question)).toEqual({
      active: true,
      token_type: 'Bearer',
      ...(await judge(accessToken)),
    });
    await server.describe(CLIENT, 'Till 18');
    expect(await clients.succeed('openid-client', 'introspect', question)).toEqual({ active: false });
  });

  it.each(COMBINATIONS)('that %s fetched with %s credentials dies when the Description changes', async (...by) => {
    const earlier = await fetchToken(...by);
    expect((await api.get('/orders', earlier)).status).toBe(200);
    const created = await server.describe(CLIENT, 'Till 18');
    expectRefused(await api.get('/orders', earlier), 'superseded');
    expect((await api.get('/orders', created)).body).toMatchObject({ clientId: CLIENT, scopes: [SCOPE] });
    expect((await api.get('/orders', await fetchToken(...by))).status).toBe(200);
  });

  it('is good under a key that was rotated in, for both guards', async () => {
    const earlier = await fetchToken();
    expect((await api.get('/orders', earlier)).status).toBe(200);
    await server.rotateKeys();
    const later = await fetchToken();
    for (const token of [earlier, later]) {
      expect((await api.get('/orders', token)).status).toBe(200);
      expect(await judge(token)).toMatchObject({ client_id: CLIENT });
    }
    const [kid, otherKid] = [earlier, later].map(keyIdOf);
    expect(kid).not.toBe(otherKid);
  });
});

function keyIdOf(token: string): unknown {
  const [header = ''] = token.split('.');
  return (JSON.parse(Buffer.from(header, 'base64url').toString()) as { kid: unknown }).kid;
}

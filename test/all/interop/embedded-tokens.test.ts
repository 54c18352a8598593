import { startEmbeddedServer } from './embedded-server';
import type { EmbeddedServer } from './embedded-server';
import { expectRefused, guardedApi } from './guarded-api';
import type { GuardedApi } from './guarded-api';
import { COMBINATIONS, startOAuthClients } from './oauth-clients';
import type { Failure, Method, OAuthClients, TokenRequest } from './oauth-clients';

const SCOPE = 'orders:read orders:cancel';
/** All that RFC 6749 appendix A.1 lets a client id have; comes apart wherever somebody forgets to encode or to decode. */
const ODD_ID = `till 7: a+b%2F&="\\~?#`;

let clients: OAuthClients;
let server: EmbeddedServer;
let api: GuardedApi;
const secrets = new Map<string, string>();

beforeAll(async () => {
  clients = await startOAuthClients();
  server = await startEmbeddedServer();
  for (const client_id of ['pos-17', ODD_ID]) {
    secrets.set(client_id, await server.register({ client_id, description: 'Till', scope: SCOPE }));
  }
  api = await guardedApi(server.issuer, { generationSource: server.generations });
});

afterAll(async () => {
  await api?.close();
  await server?.close();
  await clients?.stop();
});

/** The token request of a client, for orders:read unless told otherwise. */
function tokenRequest(method: Method, differs: Partial<TokenRequest> = {}): TokenRequest {
  const { issuer, tokenEndpoint } = server;
  const { clientId = 'pos-17' } = differs;
  const secret = secrets.get(clientId) ?? 'none';
  return { issuer, tokenEndpoint, clientId, secret, method, parameters: { scope: 'orders:read' }, ...differs };
}

/** What the token endpoint said, where the library keeps it: as its error, or next to the challenge. */
function told({ status, error, description, body }: Failure): object {
  return { status, error: error ?? body?.['error'], description: description ?? body?.['error_description'] };
}

describe.each(COMBINATIONS)('the embedded token server and %s with %s credentials', (library, method) => {
  it('agree on a token that the API accepts', async () => {
    const { access_token, ...rest } = await clients.token(library, tokenRequest(method));
    expect(rest).toEqual({ token_type: expect.stringMatching(/^bearer$/i), expires_in: 3600, scope: 'orders:read' });
    const response = await api.get('/orders', access_token);
    expect(response.status).toBe(200);
    expect(response.body).toMatchObject({ issuer: server.issuer, clientId: 'pos-17', scopes: ['orders:read'] });
    expectRefused(await api.get('/orders/cancel', access_token), 'insufficient_scope', { scopes: ['orders:cancel'] });
  });

  it('agree on several scopes', async () => {
    const request = tokenRequest(method, { parameters: { scope: SCOPE } });
    const { access_token, scope } = await clients.token(library, request);
    expect(scope).toBe(SCOPE);
    expect((await api.get('/orders/cancel', access_token)).body).toMatchObject({ scopes: SCOPE.split(' ') });
  });

  it('agree on how a client id of any characters is encoded', async () => {
    const { access_token } = await clients.token(library, tokenRequest(method, { clientId: ODD_ID }));
    expect((await api.get('/orders', access_token)).body).toMatchObject({ clientId: ODD_ID, subject: ODD_ID });
  });

  it.each([
    ['a wrong secret', { secret: 'wrong' }],
    ['an unknown client', { clientId: 'nobody' }],
  ])('report %s as invalid_client', async (_, differs) => {
    const failure = await clients.fail(library, 'token', tokenRequest(method, differs));
    const description = 'Client authentication failed.';
    expect(told(failure)).toEqual({ status: 401, error: 'invalid_client', description });
  });

  const NOT_REGISTERED = 'The client is not registered with one of the scopes';
  it.each([
    ['a scope that is not registered', { scope: 'orders:write' }, NOT_REGISTERED],
    ['scopes of which one is not registered', { scope: 'orders:read orders:write' }, NOT_REGISTERED],
    ['no scope', {}, 'scope is missing'],
  ])('report %s as invalid_scope', async (_, parameters, description) => {
    const failure = await clients.fail(library, 'token', tokenRequest(method, { parameters }));
    const said = expect.stringContaining(description);
    expect(told(failure)).toEqual({ status: 400, error: 'invalid_scope', description: said });
  });
});

describe('the embedded token server', () => {
  it.each(['openid-client', 'oauth4webapi'] as const)('sends a challenge that %s can read', async (library) => {
    const { challenges } = await clients.fail(library, 'token', tokenRequest('basic', { secret: 'wrong' }));
    expect(challenges).toEqual([{ scheme: 'basic', parameters: { realm: 'token' } }]);
  });
});

import { expectRefused, guardedApi, API } from './guarded-api';
import type { GuardedApi } from './guarded-api';
import { COMBINATIONS, LIBRARIES, METHODS, startOAuthClients } from './oauth-clients';
import type { OAuthClients } from './oauth-clients';
import type { OidcProvider } from './oidc-provider';
import { clientId, OTHER_API, startProviderWithClients, tokenRequest } from './provider-clients';

const GENERATION = Date.now() - 60_000;

let clients: OAuthClients;
let provider: OidcProvider;
let api: GuardedApi;

beforeAll(async () => {
  clients = await startOAuthClients();
  provider = await startProviderWithClients();
  for (const method of METHODS) await provider.stamp(clientId(method), GENERATION);
  api = await guardedApi(provider.issuer);
});

afterAll(async () => {
  await api?.close();
  await Promise.all([clients?.stop(), provider?.stop()]);
});

describe.each(COMBINATIONS)('a token of oidc-provider, fetched by %s with %s credentials', (library, method) => {
  it('is accepted, and the handler knows who calls', async () => {
    const before = Date.now();
    const { access_token, ...rest } = await clients.token(library, tokenRequest(provider, method));
    expect(rest).toEqual({ token_type: expect.stringMatching(/^bearer$/i), expires_in: 600, scope: 'orders:read' });

    const response = await api.get('/orders', access_token);
    expect(response.status).toBe(200);
    expect(response.body).toEqual({
      issuer: provider.issuer,
      clientId: clientId(method),
      subject: clientId(method),
      tokenId: expect.any(String),
      scopes: ['orders:read'],
      generation: GENERATION,
      expiresAtMs: expect.any(Number),
      claims: expect.objectContaining({ iss: provider.issuer, aud: API, client_id: clientId(method) }),
    });
    // `exp` is in whole seconds.
    expect(response.body.expiresAtMs).toBeGreaterThan(before + 599_000);
  });

  it('reaches no route whose scope it lacks', async () => {
    const { access_token } = await clients.token(library, tokenRequest(provider, method));
    expectRefused(await api.get('/orders/cancel', access_token), 'insufficient_scope', { scopes: ['orders:cancel'] });
  });
});

describe('an API with tokens of oidc-provider', () => {
  it.each(LIBRARIES)('refuses a token that %s asked for another API', async (library) => {
    const { access_token } = await clients.token(library, tokenRequest(provider, 'basic', { resource: OTHER_API }));
    expectRefused(await api.get('/orders', access_token), 'wrong_audience');
  });

  it('compares the time of issue of a client whose tokens carry no generation, unless the claim is named', async () => {
    const request = tokenRequest(provider, 'basic', { id: 'unstamped' });
    const { access_token } = await clients.token('openid-client', request);
    expect((await api.get('/orders', access_token)).status).toBe(200);
    const strict = await guardedApi(provider.issuer, { generationClaim: 'generation' });
    const refused = await strict.get('/orders', access_token);
    await strict.close();
    expectRefused(refused, 'generation_missing');
    const unchecked = await guardedApi(provider.issuer, { generationClaim: false });
    const response = await unchecked.get('/orders', access_token);
    await unchecked.close();
    expect(response.status).toBe(200);
    expect(response.body).toMatchObject({ clientId: 'unstamped' });
  });
});

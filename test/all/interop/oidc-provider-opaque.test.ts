import type { AuthenticateOptions } from '../../../src/gate';
import { API, expectRefused, guardedApi } from './guarded-api';
import type { GuardedApi } from './guarded-api';
import type { OidcProvider } from './oidc-provider';
import { clientId, OPAQUE_API, OTHER_API, SECRET, startProviderWithClients } from './provider-clients';

const GENERATION = Date.now() - 60_000;
const CLIENT = clientId('body');

let provider: OidcProvider;
let api: GuardedApi;

/** The API, with the credential `pos-basic` at the introspection endpoint that the metadata names. */
function introspectingApi(options: Partial<AuthenticateOptions> = {}): Promise<GuardedApi> {
  const opaque = { clientId: clientId('basic'), clientSecret: SECRET, cacheMs: 0 };
  return guardedApi(provider.issuer, { audience: [API, OPAQUE_API], opaque, ...options });
}

async function post(path: string, parameters: Readonly<Record<string, string>>): Promise<Response> {
  const body = new URLSearchParams({ client_id: CLIENT, client_secret: SECRET, ...parameters });
  return fetch(`${provider.issuer}${path}`, { method: 'POST', body });
}

async function token(resource = OPAQUE_API): Promise<string> {
  const parameters = { grant_type: 'client_credentials', scope: 'orders:read', resource };
  const document = (await (await post('/token', parameters)).json()) as { access_token: string };
  return document.access_token;
}

beforeAll(async () => {
  provider = await startProviderWithClients();
  await provider.stamp(CLIENT, GENERATION);
  api = await introspectingApi();
});

afterAll(async () => {
  await api?.close();
  await provider?.stop();
});

describe('an opaque token of oidc-provider', () => {
  it('is accepted, with what the introspection endpoint says about it', async () => {
    const opaque = await token();
    expect(opaque).not.toContain('.');
    const response = await api.get('/orders', opaque);
    expect(response.status).toBe(200);
    expect(response.body).toMatchObject({
      issuer: provider.issuer,
      clientId: CLIENT,
      scopes: ['orders:read'],
      generation: GENERATION,
      claims: { active: true, token_type: 'Bearer', aud: OPAQUE_API, client_id: CLIENT },
    });
  });

  it('works next to JWTs of the same issuer', async () => {
    const jwt = await token(API);
    expect(jwt.split('.')).toHaveLength(3);
    expect((await api.get('/orders', jwt)).status).toBe(200);
  });

  it('is refused once it is revoked', async () => {
    const opaque = await token();
    expect((await api.get('/orders', opaque)).status).toBe(200);
    expect((await post('/token/revocation', { token: opaque })).status).toBe(200);
    expectRefused(await api.get('/orders', opaque), 'inactive');
  });

  it('is refused at an API with another audience', async () => {
    const other = await introspectingApi({ audience: OTHER_API });
    expectRefused(await other.get('/orders', await token()), 'wrong_audience');
    await other.close();
  });

  it('is refused when it was never issued', async () => {
    expectRefused(await api.get('/orders', 'x'.repeat(43)), 'inactive');
  });

  it('cannot be checked with a wrong credential: 503, while JWTs are', async () => {
    const opaque = { clientId: clientId('basic'), clientSecret: 'wrong' };
    const wrong = await introspectingApi({ opaque });
    expectRefused(await wrong.get('/orders', await token()), 'introspection_unavailable');
    expect((await wrong.get('/orders', await token(API))).status).toBe(200);
    await wrong.close();
  });

  it('is superseded by a newer generation of its client', async () => {
    const opaque = await token();
    await provider.stamp(CLIENT, GENERATION + 1_000);
    expect((await api.get('/orders', await token(API))).status).toBe(200);
    expectRefused(await api.get('/orders', opaque), 'superseded');
  });
});

import { memoryGenerations } from '../../../src/gate/generation/memory';
import { eventually } from '../support/eventually';
import { expectRefused, guardedApi } from './guarded-api';
import type { GuardedApi } from './guarded-api';
import { startOAuthClients } from './oauth-clients';
import type { OAuthClients } from './oauth-clients';
import type { OidcProvider } from './oidc-provider';
import { clientId, startProviderWithClients, tokenRequest } from './provider-clients';

const FIRST = Date.now() - 60_000;
const SECOND = FIRST + 1;
const CHANGED = clientId('basic');

let clients: OAuthClients;
let provider: OidcProvider;
let api: GuardedApi;

/** A fresh token of oidc-provider. */
async function fetchToken(): Promise<string> {
  return (await clients.token('openid-client', tokenRequest(provider, 'basic'))).access_token;
}

/** Status of a call with a token. */
async function statusOf(token: string): Promise<number> {
  return (await api.get('/orders', token)).status;
}

beforeAll(async () => {
  clients = await startOAuthClients();
  provider = await startProviderWithClients();
});

beforeEach(() => provider.stamp(CHANGED, FIRST));

afterEach(() => api?.close());

afterAll(() => Promise.all([clients?.stop(), provider?.stop()]));

describe('a client whose generation moves at oidc-provider', () => {
  it('keeps its tokens until the API sees a newer one, then they are superseded', async () => {
    api = await guardedApi(provider.issuer);
    const earlier = await fetchToken();
    expect(await statusOf(earlier)).toBe(200);
    await provider.stamp(CHANGED, SECOND);
    const later = await fetchToken();
    expect(await statusOf(earlier)).toBe(200);
    expect(await statusOf(later)).toBe(200);
    expectRefused(await api.get('/orders', earlier), 'superseded');
    expect(await statusOf(later)).toBe(200);
  });

  it('loses its tokens immediately if the API is told, and a new token is good', async () => {
    const generations = memoryGenerations();
    api = await guardedApi(provider.issuer, { generationSource: generations });
    const earlier = await fetchToken();
    expect(await statusOf(earlier)).toBe(200);
    await provider.stamp(CHANGED, SECOND);
    await generations.append([[CHANGED, SECOND]]);
    expectRefused(await api.get('/orders', earlier), 'superseded');
    expect(await statusOf(await fetchToken())).toBe(200);
  });
});

describe('a key rotation at oidc-provider', () => {
  it('is followed without a refusal, to another algorithm too, and ends the withdrawn key', async () => {
    api = await guardedApi(provider.issuer);
    const withFirstKey = await fetchToken();
    expect(await statusOf(withFirstKey)).toBe(200);
    await provider.rotateKeys({ algorithm: 'ES256', keepOld: true });
    const withSecondKey = await fetchToken();
    expect(await statusOf(withSecondKey)).toBe(200);
    expect(await statusOf(withFirstKey)).toBe(200);
    // No set of keys tells about a token that was issued in the second in which the issuer was asked for it, or later.
    const nextSecond = (Math.floor(Date.now() / 1000) + 1) * 1000;
    await eventually('the second of the tokens is over', () => Date.now() >= nextSecond);
    await provider.rotateKeys({ algorithm: 'RS256', keepOld: false });
    expect(await statusOf(await fetchToken())).toBe(200);
    expectRefused(await api.get('/orders', withFirstKey), 'unknown_key');
    expectRefused(await api.get('/orders', withSecondKey), 'unknown_key');
  });
});

it('a token with a known key is accepted as before while oidc-provider is stopped', async () => {
  api = await guardedApi(provider.issuer);
  const token = await fetchToken();
  expect(await statusOf(token)).toBe(200);
  await provider.stop();
  expect(await statusOf(token)).toBe(200);
});

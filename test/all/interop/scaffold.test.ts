import request from 'supertest';
import type { Response } from 'supertest';
import { startTillgate } from '../setup/tillgate';
import type { RunningTillgate } from '../setup/tillgate';
import { API, expectRefused } from './guarded-api';
import { COMBINATIONS, METHODS, startOAuthClients } from './oauth-clients';
import type { Library, Method, OAuthClients } from './oauth-clients';
import type { OidcProvider } from './oidc-provider';
import { clientId, startProviderWithClients, tokenRequest } from './provider-clients';

const GENERATION = Date.now() - 60_000;

let clients: OAuthClients;
let provider: OidcProvider;
let tillgate: RunningTillgate<{ listening: string }>;
let url: string;

beforeAll(async () => {
  clients = await startOAuthClients();
  provider = await startProviderWithClients();
  for (const method of METHODS) await provider.stamp(clientId(method), GENERATION);
  tillgate = await startTillgate('app', {
    TILLGATE_PORT: '0',
    TILLGATE_AUTH_URL: provider.issuer,
    TILLGATE_AUDIENCE: API,
  });
  url = tillgate.report.listening;
});

afterAll(() => Promise.all([tillgate?.stop(), clients?.stop(), provider?.stop()]));

async function fetchToken(library: Library = 'openid-client', method: Method = 'basic'): Promise<string> {
  return (await clients.token(library, tokenRequest(provider, method))).access_token;
}

async function get(path: string, token?: string): Promise<Response> {
  const call = request(url).get(path);
  return await (token === undefined ? call : call.set('Authorization', `Bearer ${token}`));
}

/** The request id of a response is in its problem body too. */
function idOf(response: Response): { requestId: string } {
  return { requestId: response.headers['x-request-id'] as string };
}

describe.each(COMBINATIONS)('the scaffold, called with a token that %s fetched with %s credentials', (...by) => {
  it('allows what the scope allows, and nothing else', async () => {
    const token = await fetchToken(...by);
    const allowed = await get('/v1/orders', token);
    expect([allowed.status, allowed.headers['x-placeholder']]).toEqual([200, 'true']);
    const refused = await get('/v1/menus', token);
    expectRefused(refused, 'insufficient_scope', { scopes: ['menus:read'], ...idOf(refused) }, url);
  });
});

describe('the scaffold with oidc-provider', () => {
  it('discards the tokens of an earlier generation as soon as it has seen a newer one', async () => {
    const [earlier, bystander] = [await fetchToken('oauth4webapi', 'body'), await fetchToken()];
    expect((await get('/v1/orders', earlier)).status).toBe(200);
    await provider.stamp(clientId('body'), GENERATION + 1);
    const later = await fetchToken('simple-oauth2', 'body');
    expect((await get('/v1/orders', later)).status).toBe(200);
    const refused = await get('/v1/orders', earlier);
    expectRefused(refused, 'superseded', idOf(refused), url);
    expect((await get('/v1/orders', later)).status).toBe(200);
    expect((await get('/v1/orders', bystander)).status).toBe(200);
  });

  it('tells a client that knows only the API where tokens come from (RFC 9728)', async () => {
    const metadata = await clients.succeed('oauth4webapi', 'resource', { url });
    expect(metadata).toMatchObject({ resource: url, authorization_servers: [provider.issuer] });
  });

  it.each(['openid-client', 'oauth4webapi'] as const)('sends challenges that %s can read', async (library) => {
    const accessToken = await fetchToken(library);
    const { clientId, secret, method } = tokenRequest(provider, 'basic');
    const caller = { issuer: provider.issuer, clientId, secret, method, accessToken };
    expect(await clients.succeed(library, 'call', { ...caller, url: `${url}/v1/orders` })).toBe(200);

    const { status, challenges, body } = await clients.fail(library, 'call', { ...caller, url: `${url}/v1/menus` });
    const parameters = {
      realm: 'api',
      error: 'insufficient_scope',
      error_description: 'The access token lacks a scope that this resource requires.',
      scope: 'menus:read',
      resource_metadata: `${url}/.well-known/oauth-protected-resource`,
    };
    expect([status, challenges]).toEqual([403, [{ scheme: 'bearer', parameters }]]);
    expect(body).toMatchObject({ code: 'insufficient_scope', required_scopes: ['menus:read'] });
  });
});

import { startEmbeddedServer } from './embedded-server';
import type { EmbeddedServer } from './embedded-server';
import { guardedApi } from './guarded-api';
import { startOAuthClients } from './oauth-clients';
import type { OAuthClients } from './oauth-clients';

/** Libraries that discover, and the two documents that they can look for. */
const DISCOVERIES = [
  ['openid-client', 'oidc'],
  ['openid-client', 'oauth2'],
  ['oauth4webapi', 'oidc'],
  ['oauth4webapi', 'oauth2'],
] as const;

let clients: OAuthClients;

beforeAll(async () => {
  clients = await startOAuthClients();
});

afterAll(() => clients?.stop());

describe.each([
  ['without a path', ''],
  ['with a path', '/tenant'],
])('the metadata of an embedded issuer %s', (_, path) => {
  let server: EmbeddedServer;
  let secret: string;

  beforeAll(async () => {
    server = await startEmbeddedServer(path);
    secret = await server.register({ client_id: 'pos-17', description: 'Till', scope: 'orders:read' });
  });

  afterAll(() => server?.close());

  it.each(DISCOVERIES)('lead %s to a token (%s)', async (library, discovery) => {
    const credentials = { clientId: 'pos-17', secret, method: 'basic', parameters: { scope: 'orders:read' } };
    const request = { issuer: server.issuer, discovery, ...credentials };
    const { access_token } = await clients.succeed<{ access_token: string }>(library, 'token', request);
    const api = await guardedApi(server.issuer);
    const { status, body } = await api.get('/orders', access_token);
    await api.close();
    expect([status, body.issuer, body.clientId]).toEqual([200, server.issuer, 'pos-17']);
  });

  it.each(['oidc', 'oauth2'])('say in both documents what can be asked of it (%s)', async (discovery) => {
    const { issuer } = server;
    expect(await clients.succeed('oauth4webapi', 'discover', { issuer, discovery })).toMatchObject({
      issuer,
      token_endpoint: `${issuer}/connect/token`,
      introspection_endpoint: `${issuer}/connect/introspect`,
      jwks_uri: `${issuer}/.well-known/openid-configuration/jwks`,
      grant_types_supported: ['client_credentials'],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
    });
  });
});

import { generateKeyPairSync } from 'node:crypto';
import { Provider } from 'oidc-provider';

/** oidc-provider with client credentials and access tokens that are JWTs, which it calls resource indicators. */
export function mount({ issuer, audience, algorithm, clients, scope }) {
  const credentials = clients.map((client_id) => ({ client_id, client_secret: `secret-of-${client_id}` }));
  const provider = new Provider(issuer, {
    clients: credentials.map((client) => ({
      ...client,
      ...{ scope, grant_types: ['client_credentials'], redirect_uris: [], response_types: [] },
      token_endpoint_auth_method: 'client_secret_post',
    })),
    clientDefaults: { id_token_signed_response_alg: algorithm },
    scopes: scope.split(' '),
    jwks: { keys: [newKey(algorithm)] },
    extraTokenClaims: () => ({ generation: 1 }),
    ttl: { ClientCredentials: 3600 },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        defaultResource: () => audience,
        getResourceServerInfo: () => ({
          ...{ audience, scope, accessTokenFormat: 'jwt' },
          jwt: { sign: { alg: algorithm } },
        }),
      },
    },
  });
  return { listener: provider.callback(), path: '/token', credentials };
}

function newKey(alg) {
  const { privateKey } =
    alg === 'ES256'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), kid: 'bench', use: 'sig', alg };
}

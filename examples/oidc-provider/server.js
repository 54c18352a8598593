import { generateKeyPairSync, randomUUID } from 'node:crypto';
import Provider from 'oidc-provider';

// An authorization server for development. Tokens for AUDIENCE are JWTs, those for AUDIENCE/opaque are opaque.
const AUDIENCE = 'https://api.example.com';
const port = Number(process.env.PORT ?? 4001);
const issuer = `http://127.0.0.1:${port}`;

// Code that changes a client sets max(previous + 1, Date.now()) here, and publishes that to the generation source.
const generations = new Map([['till-9', Date.now()]]);

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const key = { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'RS256' };
const client = (client_id, scope) => ({
  client_id,
  client_secret: `${client_id}-secret`,
  scope,
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
});

const provider = new Provider(issuer, {
  // orders-api is the API itself: it asks about opaque tokens.
  clients: [client('till-9', 'orders:read'), client('orders-api')],
  scopes: ['orders:read', 'orders:cancel'],
  jwks: { keys: [key] },
  extraTokenClaims: (_ctx, { clientId }) => ({ generation: generations.get(clientId) }),
  ttl: { ClientCredentials: 600 },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    introspection: { enabled: true },
    resourceIndicators: {
      defaultResource: () => AUDIENCE,
      getResourceServerInfo: (_ctx, resource) => ({
        audience: AUDIENCE,
        scope: 'orders:read orders:cancel',
        accessTokenFormat: resource === `${AUDIENCE}/opaque` ? 'opaque' : 'jwt',
      }),
    },
  },
});

provider.listen(port, '127.0.0.1', () => console.log(issuer));

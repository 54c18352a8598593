import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import Provider from 'oidc-provider';
import { replyToParent } from '../setup/reply-to-parent.mjs';

// An authorization server of other authors. Its first argument: { audiences: string[], opaque: string[] of them whose
// tokens are opaque, clients: [{ client_id, ... }] }.
const { audiences, opaque, clients } = JSON.parse(process.argv[2]);

/** What each client's tokens carry as `generation`; a client that is not in here gets none. */
const generations = new Map();
/** Signing keys, the current one first; the older ones are still published. */
let keys = [newKey('RS256')];
let listener;

const server = createServer((req, res) => listener(req, res));
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  listener = provider(issuer).callback();
  replyToParent({ issuer }, (question) => {
    if (question.stamp) generations.set(question.stamp.client, question.stamp.generation);
    if (question.rotate) {
      keys = [newKey(question.rotate.algorithm), ...(question.rotate.keepOld ? keys : [])];
      listener = provider(issuer).callback();
    }
  });
});

function provider(issuer) {
  const scope = [...new Set(clients.flatMap((client) => client.scope.split(' ')))].join(' ');
  const algorithm = keys[0].alg;
  return new Provider(issuer, {
    clients: clients.map((client) => ({
      ...client,
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    })),
    clientDefaults: { id_token_signed_response_alg: algorithm },
    scopes: scope.split(' '),
    jwks: { keys },
    extraTokenClaims: (_ctx, { clientId }) => ({ generation: generations.get(clientId) }),
    ttl: { ClientCredentials: 600 },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true },
      revocation: { enabled: true },
      mTLS: {
        enabled: true,
        certificateBoundAccessTokens: true,
        // As behind a proxy.
        getCertificate: (ctx) => decodeURIComponent(ctx.get('x-client-certificate')) || undefined,
      },
      resourceIndicators: {
        defaultResource: () => audiences[0],
        getResourceServerInfo: (_ctx, resource) => ({
          audience: audiences.find((audience) => audience === resource),
          scope,
          accessTokenFormat: opaque.includes(resource) ? 'opaque' : 'jwt',
          jwt: { sign: { alg: algorithm } },
        }),
      },
    },
  });
}

function newKey(alg) {
  const { privateKey } = alg.startsWith('ES')
    ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
    : generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg };
}

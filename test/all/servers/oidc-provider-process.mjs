import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import Provider from 'oidc-provider';
import { replyToParent } from '../setup/reply-to-parent.mjs';

// oidc-provider with clients that change: its adapter reads them, and their generation, from one map.
const { audience, scope } = JSON.parse(process.argv[2]);
const clients = new Map();
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const key = { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'RS256' };
const CREDENTIALS = { grant_types: ['client_credentials'], redirect_uris: [], response_types: [] };

class Adapter {
  constructor(model) {
    this.model = model;
  }
  find(id) {
    const client = this.model === 'Client' ? clients.get(id) : undefined;
    return Promise.resolve(client && { ...CREDENTIALS, client_id: id, scope, ...client.values });
  }
  upsert() {
    return Promise.resolve();
  }
}

const options = {
  adapter: Adapter,
  scopes: [scope],
  jwks: { keys: [key] },
  extraTokenClaims: (_ctx, { clientId }) => ({ generation: clients.get(clientId)?.generation }),
  ttl: { ClientCredentials: 600 },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      defaultResource: () => audience,
      getResourceServerInfo: () => ({ audience, scope, accessTokenFormat: 'jwt' }),
    },
  },
};

/** Raises the number with the change; a deleted client keeps none, so its number is that of the deletion. */
function change({ id, values, deleted }) {
  const before = clients.get(id);
  const generation = Math.max((before?.generation ?? 0) + 1, Date.now());
  if (deleted) clients.delete(id);
  else clients.set(id, { values: { ...before?.values, ...values }, generation });
  return generation;
}

let listener;
const server = createServer((req, res) => listener(req, res)).listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  listener = new Provider(issuer, options).callback();
  replyToParent({ issuer }, change);
});

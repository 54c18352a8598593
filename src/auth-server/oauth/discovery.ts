import type { RequestHandler } from 'express';
import type { Context } from '../context';
import { publishedKeys } from '../storage/keys';

const CLIENT_AUTHENTICATION = ['client_secret_basic', 'client_secret_post'];

/** Makes the metadata document (RFC 8414 section 2); OpenID Connect Discovery requires the last two members. */
export function metadata({ settings: { issuer, scopes }, store }: Context): RequestHandler {
  const base = issuer.replace(/\/$/, '');
  return function showMetadata(_req, res) {
    const { clients, keys } = store.state;
    const registered = new Set([...clients.values()].flatMap((client) => client.scopes));
    res.set('Cache-Control', 'no-cache').json({
      issuer,
      token_endpoint: `${base}/connect/token`,
      token_endpoint_auth_methods_supported: CLIENT_AUTHENTICATION,
      introspection_endpoint: `${base}/connect/introspect`,
      introspection_endpoint_auth_methods_supported: CLIENT_AUTHENTICATION,
      jwks_uri: `${base}/.well-known/openid-configuration/jwks`,
      grant_types_supported: ['client_credentials'],
      scopes_supported: scopes ?? [...registered].sort(),
      response_types_supported: [],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: [keys.signing.alg],
    });
  };
}

/** Makes the key set (RFC 7517 section 5). */
export function keySet({ settings: { clock }, store }: Context): RequestHandler {
  return function showKeySet(_req, res) {
    // A rotated key signs immediately: a cached key set would lack it.
    res.set('Cache-Control', 'no-cache').json({ keys: publishedKeys(store.state.keys, clock()) });
  };
}

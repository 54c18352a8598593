import { Router } from 'express';
import type { RequestHandler } from 'express';
import type { Clock } from '../core/clock';
import { publishedKeys } from './keys';
import { serve } from './methods';
import type { State } from './state';

/** What the metadata tells. */
export interface DiscoveryOptions {
  readonly issuer: string;
  readonly state: () => State;
  /** Scopes that may be registered; `undefined`: those that are. */
  readonly knownScopes: readonly string[] | undefined;
  readonly clock: Clock;
}

const CLIENT_AUTHENTICATION = ['client_secret_basic', 'client_secret_post'];

/** Makes the addresses by which resource servers and clients find the rest (RFC 8414, OpenID Connect Discovery 1.0). */
export function discovery(options: DiscoveryOptions): Router {
  const { state, clock } = options;
  const router = Router();
  const metadata: RequestHandler = function showMetadata(_req, res) {
    res.set('Cache-Control', 'no-cache').json(describeServer(options));
  };
  serve(router, '/.well-known/oauth-authorization-server', { get: metadata });
  serve(router, '/.well-known/openid-configuration', { get: metadata });
  serve(router, '/.well-known/openid-configuration/jwks', {
    get: function showKeySet(_req, res) {
      // A rotated key signs at once: nobody may be kept from fetching it.
      res.set('Cache-Control', 'no-cache').json({ keys: publishedKeys(state().keys, clock()) });
    },
  });
  return router;
}

/** RFC 8414 section 2; the last two because OpenID Connect requires them. */
function describeServer({ issuer, state, knownScopes }: DiscoveryOptions): object {
  const base = issuer.replace(/\/$/, '');
  const registered = [...state().clients.values()].flatMap(({ scopes }) => scopes);
  return {
    issuer,
    token_endpoint: `${base}/connect/token`,
    token_endpoint_auth_methods_supported: CLIENT_AUTHENTICATION,
    introspection_endpoint: `${base}/connect/introspect`,
    introspection_endpoint_auth_methods_supported: CLIENT_AUTHENTICATION,
    jwks_uri: `${base}/.well-known/openid-configuration/jwks`,
    grant_types_supported: ['client_credentials'],
    scopes_supported: knownScopes ?? [...new Set(registered)].sort(),
    response_types_supported: [],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [state().keys.signing.alg],
  };
}

import type { RequestHandler } from 'express';
import type { Clock } from '../../core/clock';
import { publishedKeys } from '../storage/keys';
import type { State } from '../storage/state';

/** What the metadata is made of. */
export interface DiscoveryOptions {
  readonly issuer: string;
  readonly state: () => State;
  /** Scopes that may be registered; `undefined`: those that are. */
  readonly scopes: readonly string[] | undefined;
  readonly clock: Clock;
}

const CLIENT_AUTHENTICATION = ['client_secret_basic', 'client_secret_post'];

/** Makes the metadata document (RFC 8414 section 2); OpenID Connect Discovery requires the last two members. */
export function metadataEndpoint({ issuer, state, scopes }: DiscoveryOptions): RequestHandler {
  const base = issuer.replace(/\/$/, '');
  return function showMetadata(_req, res) {
    const registered = [...state().clients.values()].flatMap((client) => client.scopes);
    res.set('Cache-Control', 'no-cache').json({
      issuer,
      token_endpoint: `${base}/connect/token`,
      token_endpoint_auth_methods_supported: CLIENT_AUTHENTICATION,
      introspection_endpoint: `${base}/connect/introspect`,
      introspection_endpoint_auth_methods_supported: CLIENT_AUTHENTICATION,
      jwks_uri: `${base}/.well-known/openid-configuration/jwks`,
      grant_types_supported: ['client_credentials'],
      scopes_supported: scopes ?? [...new Set(registered)].sort(),
      response_types_supported: [],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: [state().keys.signing.alg],
    });
  };
}

/** Makes the key set (RFC 7517 section 5). */
export function keySetEndpoint({ state, clock }: DiscoveryOptions): RequestHandler {
  return function showKeySet(_req, res) {
    // A rotated key signs immediately: a cached key set would lack it.
    res.set('Cache-Control', 'no-cache').json({ keys: publishedKeys(state().keys, clock()) });
  };
}

/**
 * Serves an issuer that has a path, `https://login.example.com/tenant`, whether or not a proxy removes the path: at
 * `/tenant/connect/token`, and at the well-known URLs of RFC 8414 section 3.1 (path at the end) and OpenID Connect
 * Discovery 1.0 section 4.1 (path at the start).
 */
export function stripIssuerPath(issuer: string): RequestHandler {
  const path = new URL(issuer).pathname.replace(/\/$/, '');

  function strip(url: string): string {
    if (url.startsWith(`${path}/`)) return url.slice(path.length);
    const [pathname = '', ...query] = url.split('?');
    if (!pathname.startsWith('/.well-known/') || !pathname.endsWith(path)) return url;
    return [pathname.slice(0, -path.length), ...query].join('?');
  }

  return function removeIssuerPath(req, _res, next) {
    if (path !== '') req.url = strip(req.url);
    next();
  };
}

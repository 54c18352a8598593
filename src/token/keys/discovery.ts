import { fetchJson, FetchError } from './fetch-json';
import type { FetchJsonOptions } from './fetch-json';

/** Where the metadata of an issuer is looked for. */
export interface DiscoveryOptions extends FetchJsonOptions {
  /** The issuer that the metadata must name, exactly (RFC 8414 section 3.3). */
  readonly issuer: string;
  /** Address under which the metadata is fetched, when it is not the issuer itself. */
  readonly authUrl: string;
  /** Throws when an address must not be used, for example because it is not https. */
  readonly checkUrl: (url: string, what: string) => void;
}

/**
 * Finds an issuer's `jwks_uri`: OpenID Connect Discovery 1.0 section 4 first, then RFC 8414 section 3.
 *
 * @throws FetchError when neither document is there, or one is there and cannot be trusted.
 */
export async function discoverJwksUri(options: DiscoveryOptions): Promise<string> {
  let lastFailure: unknown;
  for (const url of wellKnownUrls(options.authUrl)) {
    try {
      return readMetadata(url, await fetchJson(url, options), options);
    } catch (error) {
      // Only "not there" leads on to the other form: a document that lies is not answered by trying the next one.
      if (!(error instanceof FetchError) || error.status === undefined || error.status < 400) throw error;
      lastFailure = error;
    }
  }
  throw lastFailure;
}

/** Both well-known addresses of an issuer: OIDC appends to the path, RFC 8414 section 3.1 inserts before it. */
export function wellKnownUrls(issuer: string): readonly [oidc: string, oauth: string] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  return [
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ];
}

function readMetadata(url: string, metadata: Record<string, unknown>, options: DiscoveryOptions): string {
  const { issuer, jwks_uri: jwksUri } = metadata;
  if (issuer !== options.issuer) {
    const named = typeof issuer === 'string' ? JSON.stringify(issuer.slice(0, 200)) : 'none';
    throw new FetchError(`${url} names another issuer: expected ${JSON.stringify(options.issuer)}, got ${named}`);
  }
  if (typeof jwksUri !== 'string' || !URL.canParse(jwksUri)) throw new FetchError(`${url} has no usable jwks_uri`);
  try {
    options.checkUrl(jwksUri, 'jwks_uri');
  } catch {
    throw new FetchError(`${url} names a jwks_uri that is neither https: nor on loopback`);
  }
  return jwksUri;
}

import { ownValue } from '../../core/objects';
import { loggableUrl } from '../../core/urls';
import { fetchJson, FetchError } from './fetch-json';
import type { FetchJsonOptions } from './fetch-json';

/** Where the metadata of an issuer is fetched. */
export interface DiscoveryOptions extends FetchJsonOptions {
  /** The issuer that the metadata must name, exactly (RFC 8414 section 3.3). */
  readonly issuer: string;
  /** URL from which the well-known URLs are built; usually the issuer. */
  readonly authUrl: string;
  /** Whether connections present a client certificate: then the endpoints for these count (RFC 8705 section 5). */
  readonly mutualTls?: boolean | undefined;
  /** Throws when a URL must not be used, for example because it is not https. */
  readonly checkUrl: (url: string, what: string) => void;
}

/** The URLs that are read from an issuer's metadata. */
export type MetadataMember = 'jwks_uri' | 'introspection_endpoint';

/**
 * Finds a URL in an issuer's metadata: OpenID Connect Discovery 1.0 section 4 first, then RFC 8414 section 3.
 *
 * @throws FetchError when neither document exists, or one exists and cannot be trusted.
 */
export async function discoverEndpoint(member: MetadataMember, options: DiscoveryOptions): Promise<string> {
  const [oidc, oauth] = wellKnownUrls(options.authUrl);
  try {
    return await urlAt(oidc, member, options);
  } catch (error) {
    // Only a missing document leads to the other form: one that cannot be trusted must not.
    if (!(error instanceof FetchError) || error.status === undefined || error.status < 400) throw error;
  }
  return urlAt(oauth, member, options);
}

/** Both well-known URLs of an issuer: OIDC appends to the path, RFC 8414 section 3.1 inserts before it. */
export function wellKnownUrls(issuer: string): readonly [oidc: string, oauth: string] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  return [
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ];
}

async function urlAt(document: string, member: MetadataMember, options: DiscoveryOptions): Promise<string> {
  const metadata = await fetchJson(document, options);
  const { issuer } = metadata;
  const alias = options.mutualTls ? ownValue(ownValue(metadata, 'mtls_endpoint_aliases'), member) : undefined;
  const url = alias ?? ownValue(metadata, member);
  const name = loggableUrl(document);
  if (issuer !== options.issuer) {
    const named = typeof issuer === 'string' ? JSON.stringify(issuer.slice(0, 200)) : 'none';
    throw new FetchError(`${name} names another issuer: expected ${JSON.stringify(options.issuer)}, got ${named}`);
  }
  if (typeof url !== 'string' || !URL.canParse(url)) throw new FetchError(`${name} has no usable ${member}`);
  try {
    options.checkUrl(url, member);
  } catch {
    const article = member === 'jwks_uri' ? 'a' : 'an';
    throw new FetchError(
      `${name} names ${article} ${member} that is neither https: nor on loopback, or that has user info`,
    );
  }
  return url;
}

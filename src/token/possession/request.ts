import type { X509Certificate } from 'node:crypto';
import { ownValue } from '../../core/objects';

/** The parts of a request that prove possession of a key. */
export interface PossessionRequest {
  readonly method?: string | undefined;
  /** Request target as received by the app. */
  readonly url?: string | undefined;
  /** The same, where a router has removed a prefix from `url`. */
  readonly originalUrl?: string | undefined;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly socket?:
    { readonly remoteAddress?: string | undefined; getPeerX509Certificate?(): X509Certificate | undefined } | undefined;
}

const DPOP_SCHEME = /^dpop /i;

/** Whether a request presents its token with the DPoP scheme (RFC 9449 section 7.1). */
export function usesDpop({ headers }: Pick<PossessionRequest, 'headers'>): boolean {
  const authorization = ownValue(headers, 'authorization');
  return typeof authorization === 'string' && DPOP_SCHEME.test(authorization);
}

/** Segments that a URL parser removes, but a router may not. */
const DOT_SEGMENT = /(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i;
const UNRESERVED = /^[A-Za-z0-9\-._~]$/;

/**
 * A URL as `htu` is compared (RFC 9449 section 4.3, check 9): without query and fragment, normalized by syntax and scheme
 * (RFC 3986 sections 6.2.2 and 6.2.3). `undefined` when it is no http(s) URL.
 */
export function comparableUrl(url: string): string | undefined {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) return undefined;
  const { origin, pathname } = new URL(url);
  return origin + pathname.replace(/%[0-9a-f]{2}/gi, normalizeEncoded);
}

/** The URL of a request under the public URL of its app, to compare with `htu`; `undefined` when it has none that is unambiguous. */
export function requestUrl(baseUrl: string, target: string): string | undefined {
  const [path = ''] = target.split(/[?#]/, 1);
  if (!path.startsWith('/') || DOT_SEGMENT.test(path)) return undefined;
  return comparableUrl(baseUrl + path);
}

function normalizeEncoded(encoded: string): string {
  const character = String.fromCharCode(parseInt(encoded.slice(1), 16));
  return UNRESERVED.test(character) ? character : encoded.toUpperCase();
}

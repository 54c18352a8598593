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
/** What a URL parser drops, or reads as another character: `\` as `/`, for a router another path. */
const AMBIGUOUS = /[^\x21-\x7e]|[\\#]/;
const UNRESERVED = /^[A-Za-z0-9\-._~]$/;

interface ComparableUrl {
  readonly origin: string;
  readonly path: string;
}

/**
 * Whether `htu` of a proof is the URL of a request below the public URL of its app, without query and fragment (RFC 9449
 * section 4.3, check 9). The proof may have any spelling of that URL (RFC 3986 sections 6.2.2 and 6.2.3), but routers
 * match the characters that were sent: where the request encodes some without need, the proof has to do the same.
 */
export function isUrlOf(htu: string, baseUrl: string, target: string): boolean {
  const [path = ''] = target.split('?', 1);
  if (!path.startsWith('/') || DOT_SEGMENT.test(path) || AMBIGUOUS.test(path)) return false;
  const [named, requested] = [parse(htu), parse(baseUrl + path)];
  if (!named || !requested || named.origin !== requested.origin) return false;
  return named.path === requested.path || decodeUnreserved(named.path) === requested.path;
}

/** `undefined` for anything but an http(s) URL. */
function parse(url: string): ComparableUrl | undefined {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) return undefined;
  const { origin, pathname } = new URL(url);
  return { origin, path: pathname.replace(/%[0-9a-f]{2}/gi, (encoded) => encoded.toUpperCase()) };
}

function decodeUnreserved(path: string): string {
  return path.replace(/%[0-9A-F]{2}/g, (encoded) => {
    const character = String.fromCharCode(parseInt(encoded.slice(1), 16));
    return UNRESERVED.test(character) ? character : encoded;
  });
}

import type { IncomingMessage } from 'node:http';
import { attempt } from './objects';

/**
 * Whether a host name or address (as `URL.hostname` gives it, IPv6 in brackets or not) can only be this machine:
 * `localhost` (RFC 6761 section 6.3), 127.0.0.0/8 and ::1 (RFC 6890). Subdomains of `localhost` do not count: resolvers
 * may look them up in DNS.
 */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, '$1');
  return name === 'localhost' || name === '::1' || /^127(\.\d{1,3}){3}$/.test(name);
}

/**
 * The host of a URL with which this machine calls what listens on a host: brackets around IPv6, and loopback for an
 * address of all interfaces (0.0.0.0, ::), which is one to listen on and none to call (RFC 6890).
 */
export function hostInUrl(host: string): string {
  const given = host.includes(':') ? `[${host}]` : host;
  const name = parseUrl(`http://${given}`)?.hostname;
  if (name === '0.0.0.0' || name === '[::ffff:0:0]') return '127.0.0.1';
  return name === '[::]' ? '[::1]' : given;
}

/** Parses an absolute URL. `URL.canParse()` of Node 20 refuses hosts with Latin-1 letters once it is optimized. */
export function parseUrl(text: string): URL | undefined {
  return attempt(() => new URL(text));
}

/** Whether a text is an absolute `http:` or `https:` URL. */
export function isHttpUrl(text: string): boolean {
  return /^https?:\/\//.test(text) && parseUrl(text) !== undefined;
}

/** Whether a URL may be called without TLS: `https:`, or `http:` to this machine. */
export function isSecureUrl(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol !== 'http:' || isLoopbackHost(hostname);
}

/** A base URL without its trailing slashes, so that a path can be appended. */
export function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '');
}

/** Longer URLs are not parsed in order to be shown: Node converts a host of many characters (RFC 3492) in quadratic time. */
const MAX_PARSED = 1_000;

/** A URL as logs, status and errors may show it: user info, query and fragment can hold secrets and are left out. */
export function loggableUrl(url: string): string {
  const parsed = url.length > MAX_PARSED ? undefined : parseUrl(url);
  if (!parsed) return url.replace(/[?#].*$/s, '').replace(/^.*@/s, '');
  const { protocol, host, pathname, search, hash } = parsed;
  return hasUserInfo(url) || search !== '' || hash !== '' ? `${protocol}//${host}${pathname}` : url;
}

/** Whether a URL carries a user name or password (RFC 3986 section 3.2.1). */
export function hasUserInfo(url: string): boolean {
  const { username, password } = new URL(url);
  return username !== '' || password !== '';
}

/** The Authorization header of a client (RFC 6749 section 2.3.1): id and secret are form-encoded, then joined. */
export function clientAuthorization(clientId: string, clientSecret: string): string {
  const credentials = [clientId, clientSecret].map((text) => new URLSearchParams({ '': text }).toString().slice(1));
  return `Basic ${Buffer.from(credentials.join(':')).toString('base64')}`;
}

/** Headers that only proxies and content delivery networks add. */
const PROXY_HEADERS =
  /^(forwarded|via|x-forwarded(-.*)?|x-real-ip|x-client-ip|x-cluster-client-ip|x-original-(for|host|url)|x-envoy-.*|cf-.*|cdn-loop|true-client-ip|fastly-.*|fly-.*|x-azure-.*|x-amzn-trace-id|x-appengine-.*)$/;

/**
 * Whether a request comes from this machine: directly, from loopback, and not from a page of another origin. For
 * endpoints without credentials of their own.
 *
 * @returns the first reason why not; `undefined` if it does
 */
export function foreignCaller(req: IncomingMessage): 'address' | 'proxy' | 'host' | 'page' | undefined {
  if (!isLoopbackHost((req.socket.remoteAddress ?? '').replace(/^::ffff:/i, ''))) return 'address';
  // A local proxy connects from loopback for callers anywhere.
  const { headers, httpVersion } = req;
  // nginx speaks HTTP/1.0 to its upstream unless told otherwise, and adds no header.
  if (httpVersion === '1.0' || Object.keys(headers).some((name) => PROXY_HEADERS.test(name))) return 'proxy';
  // DNS rebinding: a page of a foreign host name that resolves to 127.0.0.1 sends that name.
  if (!isLoopbackHost(parseUrl(`http://${req.headers.host ?? ''}`)?.hostname ?? '')) return 'host';
  return isFromForeignPage(req) ? 'page' : undefined;
}

/** Browsers send Origin with most requests, and Sec-Fetch-Site with all; programs send neither. */
function isFromForeignPage({ headers }: IncomingMessage): boolean {
  const site = headers['sec-fetch-site'] ?? 'none';
  if (site !== 'none' && site !== 'same-origin') return true;
  const own = [`http://${headers.host}`, `https://${headers.host}`];
  return headers.origin !== undefined && !own.includes(headers.origin);
}

/** Path of the protected resource metadata (RFC 9728 section 3). */
export const METADATA_PATH = '/.well-known/oauth-protected-resource';

/**
 * URL of the metadata of a resource: the well-known part goes between host and path, and the path and query are kept,
 * except for a slash that is the whole path (RFC 9728 section 3.1).
 */
export function resourceMetadataUrl(resource: string): string {
  const { origin, pathname, search } = new URL(resource);
  return `${origin}${METADATA_PATH}${pathname === '/' ? '' : pathname}${search}`;
}

import type { IncomingMessage } from 'node:http';
import { isLoopbackHost } from './urls';

/** Why a request does not count as one of this machine. */
export type ForeignCaller = 'address' | 'proxy' | 'host' | 'page';

/** Headers that only proxies and content delivery networks add. */
const PROXY_HEADERS =
  /^(forwarded|via|x-forwarded(-.*)?|x-real-ip|x-client-ip|x-cluster-client-ip|x-original-(for|host|url)|x-envoy-.*|cf-.*|cdn-loop|true-client-ip|fastly-.*|fly-.*|x-azure-.*|x-amzn-trace-id|x-appengine-.*)$/;

/**
 * Whether a request comes from this machine: directly, from loopback, and not from a page of another origin. For
 * endpoints without credentials of their own.
 *
 * @returns the first reason why not; `undefined` if it does
 */
export function foreignCaller(req: IncomingMessage): ForeignCaller | undefined {
  if (!isLoopbackHost((req.socket.remoteAddress ?? '').replace(/^::ffff:/i, ''))) return 'address';
  // A local proxy connects from loopback for callers anywhere.
  if (isFromProxy(req)) return 'proxy';
  // DNS rebinding: a page of a foreign host name that resolves to 127.0.0.1 sends that name.
  if (!isLoopbackHost(hostnameOf(`http://${req.headers.host ?? ''}`))) return 'host';
  return isFromForeignPage(req) ? 'page' : undefined;
}

/** nginx speaks HTTP/1.0 to its upstream unless told otherwise, and adds no header. */
function isFromProxy({ headers, httpVersion }: IncomingMessage): boolean {
  return httpVersion === '1.0' || Object.keys(headers).some((name) => PROXY_HEADERS.test(name));
}

/** Browsers send Origin with most requests, and Sec-Fetch-Site with all; programs send neither. */
function isFromForeignPage({ headers }: IncomingMessage): boolean {
  const site = headers['sec-fetch-site'] ?? 'none';
  if (site !== 'none' && site !== 'same-origin') return true;
  const own = [`http://${headers.host}`, `https://${headers.host}`];
  return headers.origin !== undefined && !own.includes(headers.origin);
}

function hostnameOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : '';
}

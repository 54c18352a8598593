import { isLoopbackHost } from '../core/urls';
import type { Settings } from '../index';

/** Where the embedded token server listens, and what it is called. */
export interface EmbeddedAddress {
  readonly host: string;
  readonly port: number;
  readonly url: string;
}

/** Whether `dev` starts the embedded token server: nothing names another issuer. */
export function isEmbedded({ issuer }: Settings): boolean {
  return issuer === undefined;
}

/** Without an admin token the token server stays on loopback, wherever the API listens. */
export function embeddedAddress({ host, authPort, adminToken }: Settings): EmbeddedAddress {
  const listens = adminToken !== undefined || isLoopbackHost(host) ? host : '127.0.0.1';
  return { host: listens, port: authPort, url: `http://${callable(listens)}:${authPort}` };
}

/** The host of a URL that this machine can call: all interfaces are reached through loopback, IPv6 stands in brackets. */
function callable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

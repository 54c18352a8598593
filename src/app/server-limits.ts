import type { Server, ServerOptions } from 'node:http';

/** How long a client may take, and how many may be there at once. */
export interface ServerLimits {
  /** Time for the head of a request, in ms. Default 10000. */
  readonly headersTimeoutMs: number;
  /** Time for head and body together, in ms. Default 30000: bodies are small. */
  readonly requestTimeoutMs: number;
  /** How long a connection may idle between two requests, in ms. Default 65000. */
  readonly keepAliveTimeoutMs: number;
  /** Connections at once; further ones are closed as they come. Default 10000. */
  readonly maxConnections: number;
}

const DEFAULTS: ServerLimits = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  // Longer than the 60 s after which common load balancers drop an idle connection: they must be the first to close it.
  keepAliveTimeoutMs: 65_000,
  maxConnections: 10_000,
};
/** Node looks for requests that are late every 30 s by itself: a time of 10 s would then last up to 40 s. */
const CHECK_EVERY_MS = 1_000;

/** Options of `createServer()` without which the limits are noticed late. */
export const TIMELY: ServerOptions = { connectionsCheckingInterval: CHECK_EVERY_MS };

/** Sets the limits of a server. The size of a head is node's own limit, 16 KiB; bodies are limited by who reads them. */
export function setLimits(server: Server, limits: Partial<ServerLimits> = {}): void {
  const { headersTimeoutMs, requestTimeoutMs, keepAliveTimeoutMs, maxConnections } = { ...DEFAULTS, ...limits };
  server.headersTimeout = headersTimeoutMs;
  server.requestTimeout = requestTimeoutMs;
  server.keepAliveTimeout = keepAliveTimeoutMs;
  server.maxConnections = maxConnections;
}

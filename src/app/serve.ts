import { createServer } from 'node:http';
import type { RequestListener, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Where and how to listen. */
export interface ServerOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** What the caller would change to listen elsewhere: goes into the message when the address cannot be had. */
  readonly portVariable?: string;
  /** Hard deadline of `close()`, in ms: connections that are still open are cut. Default 10000. */
  readonly drainDeadlineMs?: number;
}

/** A server that listens. */
export interface RunningServer {
  /** Port that was taken. */
  readonly port: number;
  /** Address to call it at: `http://HOST:PORT`. */
  readonly url: string;
  /**
   * Stops accepting, lets the requests under way finish, and resolves when the last connection is closed. Idle
   * keep-alive connections are closed at once; answers tell their connections to close.
   */
  close(): Promise<void>;
}

/** A slow or silent client holds a connection no longer than this. Bodies are small: 30 s are plenty. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** Longer than the 60 s after which common load balancers drop an idle connection: they must be the first to close it. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000;

/**
 * Starts to listen.
 *
 * @throws Error that says what to change, when the port is taken or must not be used.
 */
export async function startServer(handler: RequestListener, options: ServerOptions): Promise<RunningServer> {
  const underWay = new Set<ServerResponse>();
  let draining = false;
  const server = createServer(function handle(req, res) {
    underWay.add(res);
    if (draining) res.setHeader('Connection', 'close');
    res.once('close', () => {
      underWay.delete(res);
      // An answer whose head had gone out before the drain kept its connection alive: it is idle from here on.
      if (draining) setImmediate(() => server.closeIdleConnections());
    });
    handler(req, res);
  });
  server.headersTimeout = HEADERS_TIMEOUT_MS;
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS;
  await listen(server, options);

  const { port } = server.address() as AddressInfo;
  let closed: Promise<void> | undefined;
  return {
    port,
    url: httpUrl(options.host, port),
    close() {
      draining = true;
      for (const res of underWay) if (!res.headersSent) res.setHeader('Connection', 'close');
      closed ??= drain(server, options.drainDeadlineMs ?? 10_000);
      return closed;
    },
  };
}

/** `http://HOST:PORT`, an IPv6 address in brackets (RFC 3986 section 3.2.2). */
function httpUrl(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function listen(server: Server, { host, port, portVariable = 'the port' }: ServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(new Error(whyNot(error, httpUrl(host, port), portVariable), { cause: error }));
    });
    server.listen(port, host, resolve);
  });
}

function whyNot(error: NodeJS.ErrnoException, url: string, variable: string): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return `cannot listen on ${url}: another process does; stop it, or set ${variable} to a free port`;
    case 'EACCES':
      return `cannot listen on ${url}: not permitted; set ${variable} to a port above 1023`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `cannot listen on ${url}: this machine has no such address; set TILLGATE_HOST to one that it has`;
    default:
      return `cannot listen on ${url}: ${error.message}`;
  }
}

function drain(server: Server, deadlineMs: number): Promise<void> {
  return new Promise((resolve) => {
    const deadline = setTimeout(() => server.closeAllConnections(), deadlineMs);
    server.close(() => {
      clearTimeout(deadline);
      resolve();
    });
    server.closeIdleConnections();
  });
}

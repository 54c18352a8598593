import { createServer } from 'node:http';
import type { RequestListener, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises';
import { setLimits, TIMELY } from './server-limits';
import type { ServerLimits } from './server-limits';
import { refuseUnreadable } from './unreadable-requests';
import type { UnreadableRequest } from './unreadable-requests';

/** Where and how to listen. */
export interface ServerOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** What the caller would change to listen elsewhere: goes into the message when the address cannot be had. */
  readonly portVariable?: string;
  /** Hard deadline of `close()`, in ms: connections that are still open are cut. Default 10000. */
  readonly drainDeadlineMs?: number;
  /** What a slow or greedy client gets; each has a default. */
  readonly limits?: Partial<ServerLimits>;
  /** Told about every request that was refused because it could not be read: no handler knows of it. */
  readonly onUnreadable?: (request: UnreadableRequest) => void;
}

/** A server that listens. */
export interface RunningServer {
  /** Port that was taken. */
  readonly port: number;
  /** Address to call it at: `http://HOST:PORT`. */
  readonly url: string;
  /**
   * Takes the requests that are on their way, then stops accepting, lets those under way finish, and resolves when the
   * last connection is closed. Answers tell their connections to close; connections that idle are closed.
   */
  close(): Promise<void>;
}

/**
 * For so long after the word to stop requests are still taken: those that were on their way when it came. Connections
 * that are busy close themselves meanwhile, each with an answer.
 */
const GRACE_MS = 100;
/** After that, for so long at most connections are taken that the system holds, while there is one after the other. */
const WAITING_MS = 1_000;

/**
 * Starts to listen.
 *
 * @throws Error that says what to change, when the port is taken or must not be used.
 */
export async function startServer(handler: RequestListener, options: ServerOptions): Promise<RunningServer> {
  const underWay = new Set<ServerResponse>();
  const latest = new WeakMap<Duplex, ServerResponse>();
  let phase: 'open' | 'draining' | 'closing' = 'open';
  let hasArrived = false;
  const server = createServer(TIMELY, function handle(req, res) {
    underWay.add(res);
    latest.set(req.socket, res);
    if (phase !== 'open') res.setHeader('Connection', 'close');
    res.once('close', () => {
      underWay.delete(res);
      // An answer whose head had gone out before the drain kept its connection alive: it is idle from here on.
      if (phase === 'closing') setImmediate(releaseConnections);
    });
    handler(req, res);
  });
  server.on('connection', () => void (hasArrived = true));
  server.on('clientError', (error, socket) => {
    const refused = refuseUnreadable(error, socket as Socket, latest.get(socket));
    if (refused) options.onUnreadable?.(refused);
  });
  // Bounded by their size alone: node would drop those beyond a number, and with them a second Authorization.
  server.maxHeadersCount = 0;
  setLimits(server, options.limits);
  await listen(server, options);

  async function drain(deadlineMs: number): Promise<void> {
    phase = 'draining';
    for (const res of underWay) if (!res.headersSent) res.setHeader('Connection', 'close');
    const deadline = setTimeout(() => server.closeAllConnections(), deadlineMs);
    if (await hasConnections(server)) await pause(Math.min(GRACE_MS, deadlineMs));
    await takeWaiting();
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    // A connection that was accepted last is read one turn later.
    await turn();
    await turn();
    phase = 'closing';
    releaseConnections();
    await closed;
    clearTimeout(deadline);
  }

  /**
   * Timers run before sockets are read, and of the connections that wait in the system node takes one in a turn: on a
   * busy machine both have piled up, and would be reset.
   */
  async function takeWaiting(): Promise<void> {
    const untilMs = performance.now() + WAITING_MS;
    do {
      hasArrived = false;
      await turn();
    } while (hasArrived && performance.now() < untilMs);
  }

  /** Who has not sent a whole head by now holds nothing up. */
  function releaseConnections(): void {
    if (underWay.size === 0) server.closeAllConnections();
    else server.closeIdleConnections();
  }

  const { port } = server.address() as AddressInfo;
  let closed: Promise<void> | undefined;
  return {
    port,
    url: httpUrl(options.host, port),
    close() {
      closed ??= drain(options.drainDeadlineMs ?? 10_000);
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

function hasConnections(server: Server): Promise<boolean> {
  return new Promise((resolve) => server.getConnections((error, count) => resolve(error !== null || count > 0)));
}

import { createServer, STATUS_CODES } from 'node:http';
import type { RequestListener, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { awaitContinue, isWaiting } from './continue';
import { withoutSlash } from './pages';
import type { AppSettings } from './settings';
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises';

/** What the server takes of the settings. */
interface ServerOptions extends Pick<AppSettings, 'host' | 'port' | 'baseUrl'> {
  readonly log: Pick<AppSettings['log'], 'info'>;
  readonly limits?: Readonly<Partial<typeof LIMITS>>;
}

/** A server that listens. */
export interface RunningServer {
  /** Port that was taken. */
  readonly port: number;
  /** URL to call it at: `http://HOST:PORT`. */
  readonly url: string;
  /**
   * Stops: idle connections are closed, requests in progress finish, also those whose head has arrived only in part.
   * Resolves when the last connection is closed; their responses say `Connection: close`.
   */
  close(): Promise<void>;
}

/** Time limits in ms, and the number of connections. */
export const LIMITS = {
  /** For the head of a request. */
  headersTimeoutMs: 10_000,
  /** For head and body together: bodies are small. */
  requestTimeoutMs: 30_000,
  /**
   * For a connection that idles between two requests. Longer than the 60 s after which common load balancers drop one:
   * they must be the first to close it.
   */
  keepAliveTimeoutMs: 65_000,
  /** Open connections; further ones are closed immediately. */
  maxConnections: 10_000,
  /** For `close()`: connections that are still open then are cut. What stops the process has to wait longer. */
  drainDeadlineMs: 10_000,
};
/** Node checks for late requests every 30 s by default: a limit of 10 s would then take up to 40 s. */
const CHECK_EVERY_MS = 1_000;

/** How long new requests are still accepted after SIGTERM: some were sent before the load balancer noticed. */
const GRACE_MS = 100;
/** How often that is repeated at most while new connections keep coming. */
const MAX_GRACES = 10;
/** Turns of the event loop after each grace, at most, until one in which nothing arrives. */
const MAX_TURNS = 2_000;

/**
 * Starts to listen.
 *
 * @throws Error that says what to change, when the port is taken or must not be used.
 */
export async function startServer(handler: RequestListener, options: ServerOptions): Promise<RunningServer> {
  const sockets = new Set<Socket>();
  const responses = new Map<Duplex, ServerResponse>();
  let isDraining = false;
  let hasNewConnection = false;
  let hasArrival = false;
  const handle: RequestListener = (req, res) => {
    hasArrival = true;
    const earlier = responses.get(req.socket);
    // Refused before its body: the connection closes, and no further request on it counts (RFC 9112 section 9.6).
    if (isWaiting(earlier) && earlier?.headersSent) return;
    responses.set(req.socket, res);
    if (isDraining) res.setHeader('Connection', 'close');
    handler(req, res);
  };
  const server = createServer({ connectionsCheckingInterval: CHECK_EVERY_MS }, handle);
  server.on('checkContinue', (req, res) => {
    awaitContinue(res, () => isDraining);
    handle(req, res);
  });
  function track(socket: Socket): void {
    hasNewConnection = hasArrival = true;
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket) && responses.delete(socket));
  }
  server.on('connection', track);
  server.on('clientError', (error, socket) => {
    const refused = refuseUnreadable(error, socket as Socket, responses.get(socket), options.baseUrl);
    // No handler saw it: its caller and path are unknown.
    if (refused) options.log.info({ ...refused, reason: 'unreadable' }, 'request');
  });
  // The size of the head is the only bound: Node drops headers above a count, and could drop a second Authorization.
  server.maxHeadersCount = 0;
  const limits = { ...LIMITS, ...options.limits };
  server.headersTimeout = limits.headersTimeoutMs;
  server.requestTimeout = limits.requestTimeoutMs;
  server.keepAliveTimeout = limits.keepAliveTimeoutMs;
  server.maxConnections = limits.maxConnections;
  await listen(server, options);

  /**
   * Runs `closeIdle`. Node counts a connection as idle as soon as `res.end()` was called, and would destroy it with the
   * part of the response that a slow client has not taken yet, or with a further request that is being handled.
   */
  function sparingBusy(closeIdle: () => void): void {
    const busy = [...sockets].filter((socket) => responses.get(socket)?.writableFinished === false);
    for (const socket of busy) socket.destroy = () => socket;
    closeIdle();
    for (const socket of busy) delete (socket as Partial<Socket>).destroy;
  }

  async function drain(deadlineMs: number): Promise<void> {
    const deadline = setTimeout(() => server.closeAllConnections(), deadlineMs);
    isDraining = true;
    for (const res of responses.values()) {
      if (!res.headersSent) res.setHeader('Connection', 'close');
      // A response whose head was sent earlier keeps its connection alive: it is idle when the response ends.
      else res.once('close', () => setImmediate(() => sparingBusy(() => server.closeIdleConnections())));
    }
    for (let graces = 0; graces === 0 || (hasNewConnection && graces < MAX_GRACES); graces++) {
      hasNewConnection = false;
      if (sockets.size > 0) await pause(Math.min(GRACE_MS, deadlineMs));
      // Timers run before sockets are read: on a busy machine, connections still wait in the operating system, and closing
      // would reset them, with requests that a proxy cannot repeat.
      for (let turns = 0; turns < 2 || (hasArrival && turns < MAX_TURNS); turns++) {
        hasArrival = false;
        await turn();
      }
    }
    const closed = new Promise<void>((resolve) => sparingBusy(() => server.close(() => resolve())));
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    await closed;
    clearTimeout(deadline);
  }

  const { port } = server.address() as AddressInfo;
  let closed: Promise<void> | undefined;
  return {
    port,
    url: urlOf(options, port),
    close() {
      closed ??= drain(limits.drainDeadlineMs);
      return closed;
    },
  };
}

/** `http://HOST:PORT`, an IPv6 address in brackets (RFC 3986 section 3.2.2). */
function urlOf({ host }: ServerOptions, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function listen(server: Server, options: ServerOptions): Promise<void> {
  const { host, port } = options;
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(new Error(whyNot(error, urlOf(options, port)), { cause: error }));
    });
    server.listen(port, host, resolve);
  });
}

function whyNot(error: NodeJS.ErrnoException, url: string): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return `cannot listen on ${url}: another process does; stop it, or set TILLGATE_PORT to a free port`;
    case 'EACCES':
      return `cannot listen on ${url}: not permitted; set TILLGATE_PORT to a port above 1023`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `cannot listen on ${url}: this machine has no such IP address; set TILLGATE_HOST to one that it has`;
    default:
      return `cannot listen on ${url}: ${error.message}`;
  }
}

/** A request that was refused before any handler had it: Node could not parse it, or it arrived too slowly. */
interface UnreadableRequest {
  /** Status of the response. */
  readonly status: number;
  /** Node's error code, such as `HPE_INVALID_METHOD`; nothing of the request itself. */
  readonly detail: string;
}

const INVALID = {
  status: 400,
  code: 'invalid_request',
  detail: 'The request could not be read: its request line, a header or its framing is not what RFC 9112 has.',
};

/** By node's code; everything else is {@link INVALID}. */
const REFUSALS: Readonly<Record<string, typeof INVALID>> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    code: 'request_header_fields_too_large',
    detail: 'Request line and headers are larger than accepted here, 16 KiB together.',
  },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: {
    status: 413,
    code: 'payload_too_large',
    detail: 'The extensions of a chunk are larger than accepted here.',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    code: 'request_timeout',
    detail: 'The request did not arrive in time: send its head within 10 s and all of it within 30 s.',
  },
};

/**
 * Refuses a request that Node cannot parse with a problem body (RFC 9457), and closes the connection. Sends nothing after
 * the response to the same request: when its body is invalid, a second response would count as that to the next request
 * (RFC 9112 section 9.2).
 *
 * @param latest - the response to the last request of the connection whose head was valid
 * @returns what was refused; `undefined` if a handler has the request already: its response then has this status
 */
function refuseUnreadable(
  { code = '' }: NodeJS.ErrnoException,
  socket: Socket,
  latest: ServerResponse | undefined,
  baseUrl: string,
): UnreadableRequest | undefined {
  const hasResponse = latest && (latest.req.complete ? isPending(latest) : latest.headersSent);
  // Bytes after the request that said `Connection: close`.
  const isOver = code === 'HPE_CLOSED_CONNECTION';
  const refusal = socket.writable && !hasResponse && !isOver ? (REFUSALS[code] ?? INVALID) : undefined;
  if (refusal) socket.write(responseOf(refusal, baseUrl));
  socket.destroySoon();
  if (!refusal) return undefined;
  if (latest?.req.complete === false) {
    latest.statusCode = refusal.status;
    return undefined;
  }
  return { status: refusal.status, detail: code };
}

/** Not written yet, or waiting for an earlier response. Since Node 24 a written one is finished only a turn later. */
function isPending(response: ServerResponse): boolean {
  return !response.writableEnded || response.writableLength > (response.socket?.writableLength ?? 0);
}

function responseOf({ status, code, detail }: typeof INVALID, baseUrl: string): string {
  const title = STATUS_CODES[status];
  const type = `${withoutSlash(baseUrl)}/problems/${code}`;
  const body = JSON.stringify({ type, title, status, detail, code });
  return [
    `HTTP/1.1 ${status} ${title}`,
    'Content-Type: application/problem+json; charset=utf-8',
    `Content-Length: ${body.length}`,
    'Cache-Control: no-store',
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}

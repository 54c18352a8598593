import { createServer, STATUS_CODES } from 'node:http';
import type { RequestListener, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Connections } from './connections';
import { awaitContinue } from './continue';
import { withoutSlash } from './pages';
import type { AppSettings } from './settings';

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

/**
 * Starts to listen.
 *
 * @throws Error that says what to change, when the port is taken or must not be used.
 */
export async function startServer(handler: RequestListener, options: ServerOptions): Promise<RunningServer> {
  const limits = { ...LIMITS, ...options.limits };
  const connections = new Connections();
  const handle: RequestListener = (req, res) => {
    if (connections.accepts(req, res)) handler(req, res);
  };
  const server = createServer({ connectionsCheckingInterval: CHECK_EVERY_MS }, handle);
  server.on('checkContinue', (req, res) => {
    awaitContinue(res, () => connections.isDraining);
    handle(req, res);
  });
  server.on('connection', (socket) => connections.add(socket));
  server.on('clientError', (error, socket) => {
    const refused = refuseUnreadable(error, socket as Socket, connections.latestOf(socket), options.baseUrl);
    // No handler saw it: its caller and path are unknown.
    if (refused) options.log.info({ ...refused, reason: 'unreadable' }, 'request');
  });
  // The size of the head is the only bound: Node drops headers above a count, and could drop a second Authorization.
  server.maxHeadersCount = 0;
  server.headersTimeout = limits.headersTimeoutMs;
  server.requestTimeout = limits.requestTimeoutMs;
  server.keepAliveTimeout = limits.keepAliveTimeoutMs;
  server.maxConnections = limits.maxConnections;
  await listen(server, options);
  const { port } = server.address() as AddressInfo;
  let closed: Promise<void> | undefined;
  return {
    port,
    url: urlOf(options, port),
    close() {
      closed ??= connections.drain(server, limits.drainDeadlineMs);
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

import { once } from 'node:events';
import { Agent, createServer, request as requestHttp } from 'node:http';
import type { IncomingMessage, RequestListener } from 'node:http';
import { Agent as SecureAgent, request as requestHttps } from 'node:https';
import type { AddressInfo } from 'node:net';
import { attempt } from 'tillgate/internal';
import type { ContractSettings } from './options';
import { isJson, mediaTypeOf } from './responses';
import type { ApiRequest, ApiResponse } from './responses';
import { NO_TRACE, spyOnHandlers } from './spy';
import type { Trace } from './spy';

/** A request with its response. */
export interface Exchange {
  readonly request: ApiRequest;
  readonly response: ApiResponse;
  readonly trace: Trace;
  /** Describes the token of the request: `a token without scopes`. */
  readonly caller?: string | undefined;
}

/** The API under test. */
export interface Target {
  readonly call: (request: ApiRequest) => Promise<Exchange>;
  /** Stops the server and restores the handlers, unless a request is open. The next request starts again. */
  readonly stop: () => void;
  /** How many requests a rate limit leaves, where the API says so. */
  readonly left: () => number;
}

/** The server stops when no case has sent a request for this long, in ms. */
const IDLE_MS = 250;

/** Targets a server by its URL: only its responses can be seen. */
export function urlTarget(url: URL, headers: ContractSettings['headers']): Target {
  const send = httpClient(url, headers, TIMEOUT_MS);
  const call = async (request: ApiRequest): Promise<Exchange> => ({
    request,
    response: await send(request).catch(droppedResponse),
    trace: NO_TRACE,
  });
  return watchLimit(call, () => {});
}

/** Targets an app: its server on 127.0.0.1 stops after the last request, and does not keep the process alive. */
export function appTarget(
  app: RequestListener,
  { beforeGuard, headers }: Pick<ContractSettings, 'beforeGuard' | 'headers'>,
): Target {
  const spy = spyOnHandlers(app);
  const traces = new Map<number | undefined, Trace>();
  let listening: ReturnType<typeof start> | undefined;
  let idle: NodeJS.Timeout | undefined;
  let openRequests = 0;

  async function start() {
    spy.install();
    const server = createServer((req, res) => {
      traces.set(req.socket.remotePort, spy.follow(req, res, beforeGuard));
      app(req, res);
    });
    server.on('connection', (socket) => socket.unref());
    // The client reuses connections after any pause.
    server.keepAliveTimeout = 0;
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.unref().address() as AddressInfo;
    return { server, send: httpClient(new URL(`http://127.0.0.1:${port}`), headers, APP_TIMEOUT_MS) };
  }

  function stop(): void {
    if (!listening || openRequests > 0) return;
    clearTimeout(idle);
    void listening.then(({ server }) => server.close().closeAllConnections());
    listening = undefined;
    spy.release();
  }

  async function call(request: ApiRequest): Promise<Exchange> {
    clearTimeout(idle);
    openRequests += 1;
    try {
      const { send } = await (listening ??= start());
      const response = await send(request);
      const trace = traces.get(response.localPort) ?? NO_TRACE;
      // Responses that Node sends itself (400, 417) have no request object; do not attribute them to the previous request.
      traces.delete(response.localPort);
      return { request, response, trace };
    } finally {
      openRequests -= 1;
      if (openRequests === 0) idle = setTimeout(stop, IDLE_MS).unref();
    }
  }

  return watchLimit(call, stop);
}

/** Notes how many requests a rate limit leaves, where the API says so. */
function watchLimit(call: Target['call'], stop: Target['stop']): Target {
  let left = Infinity;
  return {
    stop,
    left: () => left,
    async call(request) {
      const exchange = await call(request);
      const { headers } = exchange.response;
      const text = headers['ratelimit-remaining'] ?? headers['x-ratelimit-remaining'] ?? headers['ratelimit'];
      const [, remaining] = /(?:^|\b(?:r|remaining)=)(\d+)/.exec(String(text ?? '')) ?? [];
      if (remaining !== undefined) left = Number(remaining);
      return exchange;
    },
  };
}

/** How long a server may take to send the head of a response, in ms. */
const TIMEOUT_MS = 10_000;
/** The same for an app in this process: Jest ends a test after 5 s, and names no request. */
const APP_TIMEOUT_MS = 4_000;
/** A body that takes longer is a stream: its head is enough. */
const BODY_MS = 2_000;
/** Stands for a connection that was closed without a response; no server sends it. */
const NO_RESPONSE = 444;

/** Makes a client with keep-alive connections that do not keep the process alive. */
function httpClient(
  origin: URL,
  common: ContractSettings['headers'],
  timeout: number,
): (request: ApiRequest) => Promise<ApiResponse> {
  const [agent, open] =
    origin.protocol === 'https:'
      ? [new SecureAgent({ keepAlive: true }), requestHttps]
      : [new Agent({ keepAlive: true }), requestHttp];

  function send({ method, target: path, headers, body }: ApiRequest, isRetry = false): Promise<ApiResponse> {
    return new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
      // The path goes as it is: a URL object would remove its dot segments.
      const options = {
        agent: !isRetry && agent,
        method,
        path,
        timeout,
        headers: { ...common, ...headers, ...length },
      };
      const request = open(origin, options, (response) => {
        let text = '';
        const { localPort } = response.socket;
        const finish = (): void => {
          clearTimeout(patience);
          resolve(readResponse(response, text, localPort));
        };
        const cut = (): void => {
          finish();
          response.destroy();
        };
        const patience = setTimeout(cut, BODY_MS).unref();
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        // The status of a response that is cut off counts.
        response.once('error', finish).once('end', finish);
        if (mediaTypeOf(response.headers['content-type']) === 'text/event-stream') cut();
      });
      request.once('timeout', () => request.destroy(new Error(`no response within ${timeout} ms`)));
      request.once('error', (error) => {
        // The server may have closed an idle connection while the request was on its way (RFC 9112 section 9.3.1).
        if (!isRetry && request.reusedSocket && isDrop(error)) {
          resolve(send({ method, target: path, headers, body }, true));
        } else reject(error);
      });
      request.end(body);
    });
  }
  return (request) => send(request);
}

function isDrop({ code = '' }: NodeJS.ErrnoException): boolean {
  return ['ECONNRESET', 'EPIPE', 'ECONNABORTED'].includes(code);
}

/** A connection that the server closes instead of responding refuses the request. */
function droppedResponse(error: Error): ApiResponse {
  if (!isDrop(error)) throw error;
  return { status: NO_RESPONSE, headers: {}, text: '', body: undefined, localPort: undefined, dropped: error.message };
}

function readResponse(received: IncomingMessage, text: string, localPort: number | undefined): ApiResponse {
  const { statusCode: status = 0, headers } = received;
  const body = isJson(mediaTypeOf(headers['content-type'])) ? attempt(() => JSON.parse(text) as unknown) : undefined;
  return { status, headers, text, body, localPort };
}

import { once } from 'node:events';
import { Agent, createServer, request as requestHttp } from 'node:http';
import type { IncomingMessage, RequestListener } from 'node:http';
import { Agent as SecureAgent, request as requestHttps } from 'node:https';
import type { AddressInfo } from 'node:net';
import { attempt } from '../../core/objects';
import { classify, layersOf } from '../../openapi/app-routes';
import type { Layer } from '../../openapi/app-routes';
import type { ContractSettings } from './options';
import { isJson, mediaTypeOf } from './responses';
import type { ApiRequest, ApiResponse } from './responses';

/** The API under test. */
export interface Target {
  readonly call: (request: ApiRequest) => Promise<{
    readonly response: ApiResponse;
    /** The handlers that the request has reached; grows when it reaches another one later. */
    readonly reached: readonly string[];
  }>;
  /** Stops the server and restores the handlers, unless a request is open. The next request starts again. */
  readonly stop: () => void;
}

/** The server stops when no case has sent a request for this long, in ms. */
const IDLE_MS = 250;

/** Targets a server by its URL: only its responses can be seen. */
export function urlTarget(url: URL): Target {
  const send = httpClient(url);
  return { call: async (request) => ({ response: await send(request), reached: [] }), stop: () => {} };
}

/** Targets an app: its server on 127.0.0.1 stops after the last request, and does not keep the process alive. */
export function appTarget(app: RequestListener, beforeGuard: ContractSettings['beforeGuard']): Target {
  const spy = spyOnHandlers(app);
  const reachedBy = new Map<number | undefined, readonly string[]>();
  let listening: ReturnType<typeof start> | undefined;
  let idle: NodeJS.Timeout | undefined;
  let openRequests = 0;

  async function start() {
    spy.install();
    const server = createServer((req, res) => {
      reachedBy.set(req.socket.remotePort, spy.follow(req, beforeGuard));
      app(req, res);
    });
    server.on('connection', (socket) => socket.unref());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.unref().address() as AddressInfo;
    return { server, send: httpClient(new URL(`http://127.0.0.1:${port}`)) };
  }

  function stop(): void {
    if (!listening || openRequests > 0) return;
    clearTimeout(idle);
    void listening.then(({ server }) => server.close().closeAllConnections());
    listening = undefined;
    spy.release();
  }

  async function call(request: ApiRequest): ReturnType<Target['call']> {
    clearTimeout(idle);
    openRequests += 1;
    try {
      const { send } = await (listening ??= start());
      const response = await send(request);
      const reached = reachedBy.get(response.localPort) ?? [];
      // Responses that Node sends itself (400, 417) have no request object; do not attribute them to the previous request.
      reachedBy.delete(response.localPort);
      return { response, reached };
    } finally {
      openRequests -= 1;
      if (openRequests === 0) idle = setTimeout(stop, IDLE_MS).unref();
    }
  }

  return { call, stop };
}

const TIMEOUT_MS = 10_000;

/** Makes a client with keep-alive connections that do not keep the process alive. */
function httpClient(origin: URL): (request: ApiRequest) => Promise<ApiResponse> {
  const [agent, open] =
    origin.protocol === 'https:'
      ? [new SecureAgent({ keepAlive: true }), requestHttps]
      : [new Agent({ keepAlive: true }), requestHttp];

  return function send({ method, target, headers, body }) {
    return new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
      const options = { agent, method, headers: { ...headers, ...length }, timeout: TIMEOUT_MS };
      const request = open(new URL(target, origin), options, (response) => {
        const { statusCode: status = 0, headers: received } = response;
        const { localPort } = response.socket;
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.once('error', reject);
        response.once('end', () => {
          const isParsed = isJson(mediaTypeOf(received['content-type']));
          const body = isParsed ? attempt(() => JSON.parse(text) as unknown) : undefined;
          resolve({ status, headers: received, text, body, localPort });
        });
      });
      request.once('timeout', () => request.destroy(new Error(`no response within ${TIMEOUT_MS} ms`)));
      request.once('error', reject);
      request.end(body);
    });
  };
}

type Handler = (req: IncomingMessage, res: unknown, next: (error?: unknown) => void) => unknown;

/** The body parsers of Express, which routes use with limits and types of their own. */
const PARSERS = ['jsonParser', 'urlencodedParser', 'textParser', 'rawParser'];

/** One spy per app, so that several lists of cases do not wrap each other's wrappers. */
const spies = new WeakMap<object, ReturnType<typeof createSpy>>();

/**
 * Spies on the handlers of every route of an Express app. The last handler of a route is reached when it is called, an
 * earlier one when it calls `next()`: a guard that refuses does not. Tillgate's guards and gates, body parsers and
 * `beforeGuard` do not count; neither does `.all()`, which may only prepare the other handlers.
 */
function spyOnHandlers(app: object): ReturnType<typeof createSpy> {
  const known = spies.get(app) ?? createSpy(app);
  spies.set(app, known);
  return known;
}

function createSpy(app: object) {
  const recordings = new WeakMap<
    IncomingMessage,
    { readonly reached: string[]; readonly allowed: ReadonlySet<unknown> }
  >();
  let users = 0;
  let restore: readonly (() => void)[] = [];

  function wrap(handler: Handler, isLast: boolean): Handler {
    function record(req: IncomingMessage): void {
      const recording = recordings.get(req);
      if (!recording || recording.allowed.has(handler) || recording.allowed.has(handler.name)) return;
      recording.reached.push(handler.name || '(a function without a name)');
    }
    return function spied(req, res, next) {
      if (isLast) record(req);
      return handler(req, res, function callNext(error?: unknown) {
        if (!isLast && (error === undefined || error === null)) record(req);
        next(error);
      });
    };
  }

  function wrapRoute({ stack }: NonNullable<Layer['route']>): readonly (() => void)[] {
    const layers = stack.filter((layer) => layer.method !== undefined && classify(layer.handle).kind === 'handler');
    return layers.map((layer) => {
      const { handle } = layer;
      const isLast = layer === layers.findLast(({ method }) => method === layer.method);
      const wrapped = layer as { handle: object };
      wrapped.handle = wrap(handle as Handler, isLast);
      return () => void (wrapped.handle = handle);
    });
  }

  return {
    /** Records this request from now on: the returned list grows with every handler that it reaches. */
    follow(request: IncomingMessage, beforeGuard: ContractSettings['beforeGuard']): readonly string[] {
      const reached: string[] = [];
      recordings.set(request, { reached, allowed: new Set<unknown>([...PARSERS, ...beforeGuard]) });
      return reached;
    },
    /** Wraps the handlers, until as many calls of `release()`. */
    install() {
      if (users === 0) restore = routesOf(layersOf(app) ?? []).flatMap(wrapRoute);
      users += 1;
    },
    /** Restores the handlers when no other user is left. */
    release() {
      users -= 1;
      if (users > 0) return;
      for (const undo of restore) undo();
      restore = [];
    },
  };
}

function routesOf(layers: readonly Layer[]): readonly NonNullable<Layer['route']>[] {
  return layers.flatMap(({ route, handle }) => (route ? [route] : routesOf(layersOf(handle) ?? [])));
}

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { spyOnHandlers } from './handler-spy';
import { httpClient } from './http-client';
import type { ApiRequest, ApiResponse } from './http-client';
import type { BeforeGuard } from './options';

/** A response, and which handlers its request has reached. */
export interface CallResult {
  readonly response: ApiResponse;
  /** Grows when the request reaches another handler later. */
  readonly reached: readonly string[];
}

/** The API under test. */
export interface Target {
  readonly call: (request: ApiRequest) => Promise<CallResult>;
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

/**
 * Targets an app, on a server on 127.0.0.1 that starts with the first request and stops after the last one. It does not
 * keep the process alive.
 */
export function appTarget(app: RequestListener, beforeGuard: BeforeGuard): Target {
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

  async function call(request: ApiRequest): Promise<CallResult> {
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

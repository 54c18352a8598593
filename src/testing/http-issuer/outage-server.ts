import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe } from '../../core/options';

/** How a test issuer fails: with a 503, with no response at all, or with something else than JSON. */
export type Outage = '503' | 'hang' | 'garbage';

/** Handles the requests of one endpoint. */
export type Handler = (req: IncomingMessage, res: ServerResponse) => void | Promise<void>;

/** A server on this machine that can be made to fail. */
export interface OutageServer {
  readonly url: string;
  /** Sets the handlers, by method and path; anything else is 404 or 405. */
  serve(handlers: ReadonlyMap<string, Handler>): void;
  /** Requests so far, by method and path, including those that failed. */
  count(methodAndPath: string): number;
  /**
   * Fails in this way from now on, or works again; open requests and streams are cut off.
   *
   * @throws TypeError when the fault is unknown
   */
  setOutage(fault: Outage | undefined): void;
  close(): Promise<void>;
}

const FAULTS = {
  '503': (res) => sendJson(res, 503, { error: 'temporarily_unavailable' }),
  hang: () => undefined,
  garbage: (res) => res.writeHead(200, { 'Content-Type': 'text/html' }).end('<p>This is not the page you wanted.</p>'),
} as const satisfies Record<Outage, (res: ServerResponse) => unknown>;

/** Sends JSON that must not be cached. */
export function sendJson(res: ServerResponse, status: number, body: object): void {
  res.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
  res.end(JSON.stringify(body));
}

/**
 * Listens on 127.0.0.1.
 *
 * @param port - 0: any free one
 * @throws Error when the port is taken
 */
export async function startOutageServer(port: number): Promise<OutageServer> {
  const openResponses = new Set<ServerResponse>();
  const counts = new Map<string, number>();
  let fault: Outage | undefined;
  let handlers: ReadonlyMap<string, Handler> = new Map();
  const count = (methodAndPath: string): number => counts.get(methodAndPath) ?? 0;

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const [path = ''] = (req.url ?? '').split('?', 1);
    const endpoint = `${req.method} ${path}`;
    counts.set(endpoint, count(endpoint) + 1);
    openResponses.add(res);
    res.once('close', () => openResponses.delete(res));
    if (fault) return void FAULTS[fault](res);
    const handler = handlers.get(endpoint);
    if (handler) return handler(req, res);
    const methods = [...handlers.keys()].flatMap((key) => (key.endsWith(` ${path}`) ? [key.split(' ', 1)[0]] : []));
    if (methods.length > 0) res.setHeader('Allow', methods.join(', '));
    sendJson(res, methods.length > 0 ? 405 : 404, { error: 'not_here', known: [...handlers.keys()] });
  }

  // A handler fails when the client disconnects while sending the body.
  const server = createServer((req, res) => void handle(req, res).catch(() => res.destroy()));
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    serve: (given) => void (handlers = given),
    count,
    setOutage(next) {
      if (next !== undefined && !Object.hasOwn(FAULTS, next)) {
        const known = Object.keys(FAULTS).join(', ');
        throw new TypeError(`outage(): expected one of ${known}, or nothing, got ${describe(next)}`);
      }
      if (next === fault) return;
      fault = next;
      for (const res of openResponses) res.destroy();
    },
    close() {
      return new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

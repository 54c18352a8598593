import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sendJson } from './http-issuer-json';

/** How a test issuer fails: it answers 503, does not answer at all, or answers something else than JSON. */
export type Outage = '503' | 'hang' | 'garbage';

/** Answers one request. */
export type Answer = (req: IncomingMessage, res: ServerResponse) => void | Promise<void>;

/** A server on this machine whose answers can be taken away. */
export interface BreakableServer {
  readonly address: string;
  /** Answers these from now on, by method and path; anything else is not found. */
  serve(answers: ReadonlyMap<string, Answer>): void;
  /** Requests so far, by method and path; those that failed included. */
  count(methodAndPath: string): number;
  /** Fails in this way from now on, or no more; whatever is under way, a stream too, is cut off. */
  breakDown(fault: Outage | undefined): void;
  close(): Promise<void>;
}

const FAULTS = {
  '503': (res) => sendJson(res, 503, { error: 'temporarily_unavailable' }),
  hang: () => undefined,
  garbage: (res) => res.writeHead(200, { 'Content-Type': 'text/html' }).end('<p>This is not the page you wanted.</p>'),
} as const satisfies Record<Outage, (res: ServerResponse) => unknown>;

/** Names of the faults. */
export const OUTAGES = Object.keys(FAULTS) as readonly Outage[];

/**
 * Listens on 127.0.0.1.
 *
 * @param port - 0: any free one
 * @throws Error when the port is taken
 */
export async function startBreakableServer(port: number): Promise<BreakableServer> {
  const underWay = new Set<ServerResponse>();
  const counts = new Map<string, number>();
  let fault: Outage | undefined;
  let answers: ReadonlyMap<string, Answer> = new Map();

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const [path = ''] = (req.url ?? '').split('?', 1);
    const asked = `${req.method} ${path}`;
    counts.set(asked, count(asked) + 1);
    underWay.add(res);
    res.once('close', () => underWay.delete(res));
    if (fault) return void FAULTS[fault](res);
    const found = answers.get(asked);
    if (found) return found(req, res);
    const methods = [...answers.keys()].flatMap((key) => (key.endsWith(` ${path}`) ? [key.split(' ', 1)[0]] : []));
    if (methods.length > 0) res.setHeader('Allow', methods.join(', '));
    sendJson(res, methods.length > 0 ? 405 : 404, { error: 'not_here', known: [...answers.keys()] });
  }

  function count(methodAndPath: string): number {
    return counts.get(methodAndPath) ?? 0;
  }

  const server = createServer((req, res) => {
    // A request that ends halfway is nobody's failure here.
    answer(req, res).catch(() => res.destroy());
  });
  await listen(server, port);

  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    serve(given) {
      answers = given;
    },
    count,
    breakDown(next) {
      if (next === fault) return;
      fault = next;
      for (const res of underWay) res.destroy();
    },
    close() {
      return new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject);
      resolve();
    });
  });
}

import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A server on loopback whose responses a test decides one by one. */
export interface FeedServer {
  readonly url: string;
  /** Every request so far. */
  readonly requests: IncomingMessage[];
  /** Handles the next requests. */
  handler: RequestListener;
  /** Responses that are still open. */
  readonly open: Set<ServerResponse>;
  stop(): Promise<void>;
}

export async function feedServer(): Promise<FeedServer> {
  const requests: IncomingMessage[] = [];
  const open = new Set<ServerResponse>();
  const server: Server = createServer((request, response) => {
    requests.push(request);
    open.add(response);
    response.on('close', () => open.delete(response));
    feed.handler(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const feed: FeedServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    open,
    handler: (_, response) => response.writeHead(500).end(),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return feed;
}

/** Responds with JSON and its content type. */
export function json(body: unknown, headers: Record<string, string> = {}): RequestListener {
  return (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
}

/** Opens an event stream and writes `text` to it. */
export function stream(text = ''): RequestListener {
  return (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    response.flushHeaders();
    if (text !== '') response.write(text);
  };
}

/** Waits, without a timer, for what real sockets bring about. */
export async function until(condition: () => boolean): Promise<void> {
  for (const giveUpMs = Date.now() + 3_000; !condition();) {
    if (Date.now() > giveUpMs) throw new Error(`never came true: ${condition.toString()}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

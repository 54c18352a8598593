/**
 * A process that serves a generations feed, argv[2]: `token-server`, the embedded one, or the URL of a store that it
 * relays. It counts what it does, and responds to `/bench/` itself.
 */
import { mkdtempSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAuthServer } from '../../src/auth-server/index';
import { generationsFeed } from '../../src/generation';
import { generationsFromUrl } from '../../src/generation/from-url';
import type { FromFeed } from './messages';

const subscribers = new Set<ServerResponse>();
const open = new Set<Socket>();
let requests = 0;
let closedBytes = 0;

async function main(what = process.argv[2] ?? ''): Promise<void> {
  if (what === 'token-server') return serveTokenServer();
  // Nothing writes a sentinel.
  const feed = generationsFeed({ source: { ...generationsFromUrl(what), sentinel: undefined } });
  await feed.ready();
  const mounted: RequestListener = (req, res) => {
    req.url = req.url?.replace(/^\/generations/, '') || '/';
    feed(req, res);
  };
  serve(mounted, () => Promise.reject(new Error('a relay registers no client')));
}

async function serveTokenServer(): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'tillgate-bench-'));
  const issuer = 'http://127.0.0.1:4000';
  const audience = 'http://127.0.0.1:3000';
  const tokenServer = await createAuthServer({ issuer, audience, dataDir, rateLimit: false });
  serve(tokenServer.handler, async (clientIds) => {
    // Their changes go to disk together.
    await Promise.all(clientIds.map((client_id) => tokenServer.register({ client_id, scope: 'a' })));
    return Math.max(...tokenServer.list().map(({ generation }) => generation));
  });
}

function serve(feed: RequestListener, register: (clientIds: readonly string[]) => Promise<number>): void {
  const server = createServer((req, res) => {
    requests++;
    if (!req.url?.startsWith('/bench/')) return feed(req, res);
    void own(req, res, register);
  });
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.on('close', () => {
      open.delete(socket);
      closedBytes += bytesOf(socket);
    });
  });
  process.on('message', () =>
    tell({ requests, bytes: [...open].reduce((sum, one) => sum + bytesOf(one), closedBytes), connections: open.size }),
  );
  server.listen(0, '127.0.0.1', () => tell({ base: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }));
}

/** `subscribe` and `send`: a bare stream of events; `register`: clients of the token server. */
async function own(
  req: IncomingMessage,
  res: ServerResponse,
  register: (clientIds: readonly string[]) => Promise<number>,
): Promise<void> {
  if (req.url === '/bench/subscribe') {
    res.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    subscribers.add(res);
    res.on('close', () => subscribers.delete(res));
    return;
  }
  let body = '';
  for await (const chunk of req) body += String(chunk);
  if (req.url === '/bench/send') for (const subscriber of subscribers) subscriber.write(`data: ${body}\n\n`);
  res.setHeader('content-type', 'application/json');
  res.end(JSON.stringify(req.url === '/bench/register' ? await register(JSON.parse(body) as string[]) : 0));
}

function bytesOf({ bytesRead, bytesWritten }: Socket): number {
  return bytesRead + bytesWritten;
}

function tell(message: FromFeed): void {
  process.send?.(message);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});

/** The embedded token server as a process; it registers clients and sends bare messages under `/bench/`. */
import { mkdtempSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAuthServer } from '../../src/cli/auth-server/index';
import type { AuthServer } from '../../src/cli/auth-server/index';

const subscribers = new Set<ServerResponse>();

async function main(): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'tillgate-bench-'));
  const [issuer, audience] = ['http://127.0.0.1:4000', 'http://127.0.0.1:3000'];
  const tokenServer = await createAuthServer({ issuer, audience, dataDir, rateLimit: false });
  const server = createServer((req, res) => {
    if (!req.url?.startsWith('/bench/')) return tokenServer.handler(req, res);
    void own(req, res, tokenServer);
  });
  server.listen(0, '127.0.0.1', () => {
    process.send?.({ base: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  });
}

/** `subscribe` and `send`: a bare stream of events; `register`: clients of the token server. */
async function own(req: IncomingMessage, res: ServerResponse, tokenServer: AuthServer): Promise<void> {
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
  res.end(
    JSON.stringify(req.url === '/bench/register' ? await register(tokenServer, JSON.parse(body) as string[]) : 0),
  );
}

/** Their changes go to disk together. */
async function register(tokenServer: AuthServer, clientIds: readonly string[]): Promise<number> {
  await Promise.all(clientIds.map((client_id) => tokenServer.register({ client_id, scope: 'a' })));
  return Math.max(...tokenServer.list().map(({ generation }) => generation));
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});

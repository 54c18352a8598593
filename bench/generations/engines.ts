import { createServer } from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAuthServer } from '../../src/auth-server/index';
import { generationsFromUrl } from '../../src/generation/from-url';
import { startPostgres } from '../../test/all/support/postgres-server';
import { startRedis } from '../../test/all/support/redis-server';

/** One source under measurement: a server that runs, and the way changes get into it. */
export interface Engine {
  readonly name: string;
  readonly url: string;
  /** Makes a client known; responses its generation. */
  register(clientId: string): Promise<number>;
  /** Discards the tokens of a client; resolved means durable. */
  change(clientId: string): Promise<void>;
  stop(): Promise<void>;
}

const ENGINES: Readonly<Record<string, () => Promise<Engine>>> = {
  redis: async () => storeEngine('redis', await startRedis({ appendOnly: true })),
  postgres: async () => storeEngine('postgres', await startPostgres()),
  http: tokenServerEngine,
};

/** Names of the engines. */
export const ENGINE_NAMES = Object.keys(ENGINES);

/**
 * Starts an engine with a server of its own on loopback.
 *
 * @throws Error when there is none of that name
 */
export function startEngine(name: string): Promise<Engine> {
  const start = ENGINES[name];
  if (!start) throw new Error(`unknown engine ${name}: known are ${ENGINE_NAMES.join(', ')}`);
  return start();
}

async function storeEngine(name: string, server: { url: string; stop(): Promise<void> }): Promise<Engine> {
  const source = generationsFromUrl(server.url);
  async function publish(clientId: string): Promise<number> {
    const generation = Date.now();
    await source.publish?.(clientId, generation);
    return generation;
  }
  await publish('warm-up');
  return {
    name,
    url: server.url,
    // One less, so that a change in the same millisecond is above it.
    register: () => Promise.resolve(Date.now() - 1),
    change: async (clientId) => void (await publish(clientId)),
    async stop() {
      await source.close?.();
      await server.stop();
    },
  };
}

/** The embedded token server: a change is a revocation, confirmed once it is on disk. */
async function tokenServerEngine(): Promise<Engine> {
  const dataDir = mkdtempSync(join(tmpdir(), 'tillgate-bench-'));
  const issuer = 'http://127.0.0.1:4000';
  const tokenServer = await createAuthServer({ issuer, audience: 'http://127.0.0.1:3000', dataDir, rateLimit: false });
  const server = createServer(tokenServer.handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  async function post(path: string, body?: object): Promise<{ generation: number }> {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body ?? {}) };
    const response = await fetch(base + path, body ? init : { method: 'POST' });
    if (!response.ok) throw new Error(`${path} responded with ${response.status}: ${await response.text()}`);
    return (await response.json()) as { generation: number };
  }
  return {
    name: 'http',
    url: `${base}/generations`,
    register: async (clientId) => (await post('/clients', { client_id: clientId, scope: 'a' })).generation,
    change: async (clientId) => void (await post(`/clients/${clientId}/revoke`)),
    async stop() {
      await tokenServer.close();
      server.closeAllConnections();
      server.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

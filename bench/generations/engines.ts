import { fork } from 'node:child_process';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { Pool } from 'pg';
import { generationsFromUrl } from '../../src/gate/generation/from-url';
import { startPostgres } from '../../test/all/support/postgres-server';
import { startRedis } from '../../test/all/support/redis-server';
import { fill } from './fill';
import { BARE } from './messages';
import type { FromTokenServer } from './messages';

/** One source under measurement: a server that runs, and the way changes get into it. */
export interface Engine {
  readonly name: string;
  /** Of the source that the readers follow. */
  readonly url: string;
  /** Makes clients known; returns the generation that their tokens carry. */
  register(clientIds: readonly string[]): Promise<number>;
  /** Discards the tokens of a client; resolved means durable. */
  change(clientId: string): Promise<void>;
  /** A bare message to everyone that `subscribeBare` has subscribed, through the same server. */
  send(message: string): Promise<void>;
  stop(): Promise<void>;
}

const ENGINES: Readonly<Record<string, (floors: number) => Promise<Engine>>> = {
  redis: redisEngine,
  postgres: postgresEngine,
  http: tokenServerEngine,
};

/** Names of the engines. */
export const ENGINE_NAMES = Object.keys(ENGINES);

/**
 * Starts an engine with a server of its own on loopback, which has `client-0` to `client-N` for so many floors.
 *
 * @throws Error when there is none of that name
 */
export function startEngine(name: string, floors = 0): Promise<Engine> {
  const start = ENGINES[name];
  if (!start) throw new Error(`unknown engine ${name}: known are ${ENGINE_NAMES.join(', ')}`);
  return start(floors);
}

async function redisEngine(floors: number): Promise<Engine> {
  const server = await startRedis({ appendOnly: true });
  const client = new Redis(server.url);
  await fill(server.url, floors);
  const publisher = await publishing('redis', server.url);
  return {
    ...publisher,
    send: async (message) => void (await client.publish(BARE, message)),
    async stop() {
      await publisher.stop();
      client.disconnect();
      await server.stop();
    },
  };
}

async function postgresEngine(floors: number): Promise<Engine> {
  const server = await startPostgres({ settings: ['max_connections=500'] });
  // A connection that is ending may still see the server stop.
  const pool = new Pool({ connectionString: server.url, max: 1 }).on('error', () => undefined);
  const publisher = await publishing('postgres', server.url);
  await fill(server.url, floors);
  return {
    ...publisher,
    send: async (message) => void (await pool.query(`SELECT pg_notify('${BARE}', $1)`, [message])),
    async stop() {
      await publisher.stop();
      await pool.end();
      await server.stop();
    },
  };
}

type Publisher = Pick<Engine, 'name' | 'url' | 'register' | 'change' | 'stop'>;

async function publishing(name: string, url: string): Promise<Publisher> {
  const source = generationsFromUrl(url);
  const change = async (clientId: string): Promise<void> => void (await source.append?.([[clientId, Date.now()]]));
  await change('warm-up');
  // One less, so that a change in the same millisecond is above it.
  return { name, url, register: () => Promise.resolve(Date.now() - 1), change, stop: async () => source.close?.() };
}

/** The embedded token server: a change is a revocation, confirmed once it is on disk. */
async function tokenServerEngine(floors: number): Promise<Engine> {
  const server = await startTokenServer();
  const register = async (ids: readonly string[]): Promise<number> =>
    (await server.post('/bench/register', ids)) as number;
  await register(Array.from({ length: floors }, (_, index) => `client-${index}`));
  return {
    ...server,
    name: 'http',
    register,
    change: async (clientId) => void (await server.post(`/clients/${clientId}/revoke`)),
  };
}

interface TokenServer extends Pick<Engine, 'url' | 'send' | 'stop'> {
  post(path: string, body?: unknown): Promise<unknown>;
}

async function startTokenServer(): Promise<TokenServer> {
  const child = fork(join(__dirname, 'token-server.ts'), { execArgv: ['--conditions=source', '--import', 'tsx'] });
  const kill = (): void => void child.kill();
  process.setMaxListeners(0).once('exit', kill);
  const base = await new Promise<string>((resolve, reject) => {
    child.once('message', (message: FromTokenServer) => resolve(message.base));
    child.once('exit', (code) => reject(new Error(`the token server ended with ${code}`)));
  });

  async function post(path: string, body?: unknown): Promise<unknown> {
    const json = { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    const response = await fetch(base + path, { method: 'POST', ...(body !== undefined && json) });
    if (!response.ok) throw new Error(`${path} responded with ${response.status}: ${await response.text()}`);
    return response.json();
  }
  return {
    url: `${base}/generations`,
    post,
    send: async (message) => void (await post('/bench/send', message)),
    async stop() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      kill();
      await ended;
    },
  };
}

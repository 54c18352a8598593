import { fork } from 'node:child_process';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { Pool } from 'pg';
import { generationsFromUrl } from '../../src/generation/from-url';
import { startPostgres } from '../../test/all/support/postgres-server';
import { startRedis } from '../../test/all/support/redis-server';
import { fill } from './fill';
import { postgresMeter, processMeter, redisMeter } from './meters';
import type { Meter } from './meters';
import { BARE } from './messages';
import type { FromFeed } from './messages';

/** One source under measurement: a server that runs, and the way changes get into it. */
export interface Engine {
  readonly name: string;
  /** Of the source that the readers follow. */
  readonly url: string;
  /** What the server does. */
  readonly meter: Meter;
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
  relay: relayEngine,
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
    meter: redisMeter(server),
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
  const pool = new Pool({ connectionString: server.url, max: 1 });
  const publisher = await publishing('postgres', server.url);
  await fill(server.url, floors);
  return {
    ...publisher,
    meter: postgresMeter(server, pool),
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
  const change = async (clientId: string): Promise<void> => source.publish?.(clientId, Date.now());
  await change('warm-up');
  // One less, so that a change in the same millisecond is above it.
  return { name, url, register: () => Promise.resolve(Date.now() - 1), change, stop: async () => source.close?.() };
}

/** The embedded token server: a change is a revocation, confirmed once it is on disk. */
async function tokenServerEngine(floors: number): Promise<Engine> {
  const feed = await startFeed('token-server');
  const register = async (ids: readonly string[]): Promise<number> =>
    (await feed.post('/bench/register', ids)) as number;
  await register(Array.from({ length: floors }, (_, index) => `client-${index}`));
  return {
    ...feed,
    name: 'http',
    register,
    change: async (clientId) => void (await feed.post(`/clients/${clientId}/revoke`)),
  };
}

/** A relay that follows Redis; measured is the process of the relay, and changes go to Redis. */
async function relayEngine(floors: number): Promise<Engine> {
  const redis = await redisEngine(floors);
  const feed = await startFeed(redis.url);
  return {
    ...redis,
    ...feed,
    name: 'relay',
    async stop() {
      await feed.stop();
      await redis.stop();
    },
  };
}

interface Feed extends Pick<Engine, 'url' | 'meter' | 'send' | 'stop'> {
  post(path: string, body?: unknown): Promise<unknown>;
}

async function startFeed(what: string): Promise<Feed> {
  const child = fork(join(__dirname, 'feed-process.ts'), [what], { execArgv: ['--import', 'tsx'] });
  const kill = (): void => void child.kill();
  process.setMaxListeners(0).once('exit', kill);
  const base = await new Promise<string>((resolve, reject) => {
    child.once('message', (message: FromFeed) => resolve(message.base ?? ''));
    child.once('exit', (code) => reject(new Error(`the feed ended with ${code}`)));
  });

  async function post(path: string, body?: unknown): Promise<unknown> {
    const json = { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    const response = await fetch(base + path, { method: 'POST', ...(body !== undefined && json) });
    if (!response.ok) throw new Error(`${path} responded with ${response.status}: ${await response.text()}`);
    return response.json();
  }
  return {
    url: `${base}/generations`,
    meter: processMeter(child),
    post,
    send: async (message) => void (await post('/bench/send', message)),
    async stop() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      kill();
      await ended;
    },
  };
}

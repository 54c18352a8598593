import type * as Ioredis from 'ioredis';
import type * as NodeRedis from 'redis';
import { loadIfInstalled } from './optional-package';
import type { Load } from './optional-package';
import { redisConnection } from './redis-client';
import type { RedisClient, RedisConnection } from './redis-client';

/** Whom a connection is for. */
export interface RedisPurpose {
  /** As the server lists the connection. */
  readonly name: string;
  /** Begins the message when there is no client: who needs one. */
  readonly needs: string;
  readonly load: Load;
  /** What the two clients are told beside the address. */
  readonly ioredis?: {
    readonly maxRetriesPerRequest: number;
    readonly enableReadyCheck: boolean;
    readonly disconnectTimeout: number;
  };
  readonly nodeRedis?: { readonly commandsQueueMaxLength: number };
}

const CONNECT_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_MS = 10_000;

/**
 * Connects to a `redis://` or `rediss://` address by ioredis or redis (node-redis), whichever is installed, and again
 * whenever the connection is lost.
 *
 * @throws TypeError when neither is installed; the message does not repeat the address, which may hold a password
 */
export function connectToRedis(url: string, purpose: RedisPurpose): RedisConnection {
  const { name, needs, load } = purpose;
  const address = withoutOurs(url);
  const ioredis = loadIfInstalled(load, 'ioredis') as typeof Ioredis | undefined;
  if (ioredis) {
    const options = { connectTimeout: CONNECT_TIMEOUT_MS, keepAlive: KEEP_ALIVE_MS, connectionName: name };
    return listenedTo(new ioredis.Redis(address, { ...options, ...purpose.ioredis }));
  }
  const nodeRedis = loadIfInstalled(load, 'redis') as typeof NodeRedis | undefined;
  if (nodeRedis) {
    const socket = { connectTimeout: CONNECT_TIMEOUT_MS, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS };
    const client = nodeRedis.createClient({ url: address, socket, name, ...purpose.nodeRedis });
    const connection = listenedTo(client);
    client.connect().catch(() => undefined);
    return connection;
  }
  throw new TypeError(`${needs} the package ioredis or redis, and neither is installed: npm install ioredis@6`);
}

/** Without a listener, a connection that is lost would end the process; the failure comes out of whatever is sent. */
function listenedTo(client: RedisClient): RedisConnection {
  client.on('error', () => undefined);
  return redisConnection(client);
}

/** `key` and `sentinel` are ours; the clients would take them for options of theirs. */
function withoutOurs(url: string): string {
  const address = new URL(url);
  address.searchParams.delete('key');
  address.searchParams.delete('sentinel');
  return address.href;
}

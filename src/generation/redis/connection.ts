import type * as Ioredis from 'ioredis';
import type * as NodeRedis from 'redis';
import { describe } from '../../core/options';
import { loadIfInstalled, readStoreUrl } from '../source-url';
import type { Load } from '../source-url';

/** The part of a client of ioredis that is used; `Redis` of ioredis 5 and 6 fits. */
export interface IoredisClient {
  readonly status: string;
  call(command: string, ...args: string[]): Promise<unknown>;
  subscribe(...channels: string[]): Promise<unknown>;
  duplicate(): IoredisClient;
  disconnect(): void;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

/** The part of a client of node-redis that is used; what `createClient()` of redis 5 and 6 returns fits. */
export interface NodeRedisClient {
  readonly isReady: boolean;
  sendCommand(args: string[]): Promise<unknown>;
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  duplicate(): NodeRedisClient;
  connect(): Promise<unknown>;
  destroy(): void;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

/** A client of ioredis or of node-redis. */
export type RedisClient = IoredisClient | NodeRedisClient;

/** One connection, made by either client. */
export interface RedisConnection {
  send(args: readonly string[]): Promise<unknown>;
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  /** Calls `listener` whenever the connection breaks, also if the client reconnects by itself; returns a stop function. */
  onBreak(listener: (error: unknown) => void): () => void;
  /** Opens another connection to the same server; commands wait until it is open. */
  duplicate(): RedisConnection;
  close(): void;
}

/** Events that mean a gap; no single one is common to both clients. */
const BREAKS = ['close', 'end', 'error', 'reconnecting'] as const;

/** Members of clients of several servers: their messages are not ordered, so reads could not rely on them. */
const CLUSTER_MEMBERS = ['isCluster', 'masters', 'getMasterNode'] as const;

/**
 * Recognizes a client by its shape.
 *
 * @param factory - what the client was given to, for the message
 * @throws TypeError when it is neither of ioredis nor of node-redis, or of a cluster.
 */
export function redisConnection(client: RedisClient, factory = 'redisGenerations'): RedisConnection {
  const shape = ((client as RedisClient | undefined) ?? {}) as Record<string, unknown>;
  if (CLUSTER_MEMBERS.some((name) => Boolean(shape[name]))) {
    throw new TypeError(
      `${factory}(): option "client" must be connected to one server, the primary; got a client of several`,
    );
  }
  if (typeof shape['call'] === 'function' && 'status' in shape) return ofIoredis(client as IoredisClient);
  if (typeof shape['sendCommand'] === 'function' && 'isReady' in shape) return ofNodeRedis(client as NodeRedisClient);
  const expected = 'a client of ioredis or of redis (node-redis)';
  throw new TypeError(`${factory}(): option "client" must be ${expected}, got ${describe(client)}`);
}

function ofIoredis(client: IoredisClient): RedisConnection {
  return {
    send: ([command = '', ...args]) => client.call(command, ...args),
    subscribe(channel, listener) {
      client.on('message', (from, message) => {
        if (from === channel) listener(String(message));
      });
      return client.subscribe(channel);
    },
    onBreak: (listener) => listenForBreaks(client, listener),
    duplicate: () => ofIoredis(client.duplicate()),
    close: () => client.disconnect(),
  };
}

function ofNodeRedis(client: NodeRedisClient): RedisConnection {
  return {
    send: (args) => client.sendCommand([...args]),
    subscribe: (channel, listener) => client.subscribe(channel, (message) => listener(String(message))),
    onBreak: (listener) => listenForBreaks(client, listener),
    duplicate() {
      const copy = client.duplicate();
      // The next command reports the failure.
      copy.connect().catch(() => undefined);
      return ofNodeRedis(copy);
    },
    close: () => client.destroy(),
  };
}

/** The listener for `error` is never removed: without one, a lost connection would end the process. */
function listenForBreaks(client: RedisClient, listener: (error: unknown) => void): () => void {
  let listening = true;
  const onBreak = (error?: unknown): void => {
    if (listening) listener(error);
  };
  for (const event of BREAKS) client.on(event, onBreak);
  return () => {
    listening = false;
    for (const event of BREAKS) if (event !== 'error') client.off(event, onBreak);
  };
}

/** What a connection is for. */
export interface RedisPurpose {
  /** Name of the connection in CLIENT LIST. */
  readonly name: string;
  /** Start of the message if no client is installed. */
  readonly needs: string;
  readonly load: Load;
  /** Further options of the two clients. */
  readonly ioredis?: {
    readonly maxRetriesPerRequest: number;
    readonly enableReadyCheck: boolean;
    readonly disconnectTimeout: number;
  };
  readonly nodeRedis?: {
    readonly commandsQueueMaxLength?: number;
    /** `timeout`: longest time that a command waits for a connection, in ms; 0 for no limit. */
    readonly commandOptions?: { readonly timeout: number };
  };
}

const CONNECT_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_MS = 10_000;

/**
 * Connects to a `redis://` or `rediss://` URL by redis (node-redis) or ioredis, whichever is installed, and reconnects
 * when the connection is lost. If both are, by redis: it parses large replies faster than ioredis 6.
 *
 * @throws TypeError when neither is installed; the message does not repeat the URL, which may hold a password
 */
export function connectToRedis(url: string, purpose: RedisPurpose): RedisConnection {
  const { name, needs, load } = purpose;
  const store = readStoreUrl(url, 'redis', 'key');
  const nodeRedis = loadIfInstalled(load, 'redis') as typeof NodeRedis | undefined;
  if (nodeRedis) {
    const socket = { connectTimeout: CONNECT_TIMEOUT_MS, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS };
    const client = nodeRedis.createClient({ url: store.url, socket, name, ...purpose.nodeRedis });
    const connection = withErrorListener(client);
    client.connect().catch(() => undefined);
    return connection;
  }
  const ioredis = loadIfInstalled(load, 'ioredis') as typeof Ioredis | undefined;
  if (ioredis) {
    const options = { connectTimeout: CONNECT_TIMEOUT_MS, keepAlive: KEEP_ALIVE_MS, connectionName: name };
    // RESP2: ioredis 6 parses its flat lists of texts in half of the time of RESP3's pairs. ioredis 5 ignores it.
    return withErrorListener(new ioredis.Redis(store.url, { ...options, ...purpose.ioredis, protocol: 2 }));
  }
  throw new TypeError(`${needs} the package redis or ioredis, and neither is installed: npm install redis@6`);
}

/** Without a listener, a lost connection would end the process; commands report the failure. */
function withErrorListener(client: RedisClient): RedisConnection {
  client.on('error', () => undefined);
  return redisConnection(client);
}

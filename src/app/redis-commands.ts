import { createRequire } from 'node:module';
import type * as Ioredis from 'ioredis';
import type * as NodeRedis from 'redis';

/** A connection to Redis that takes commands. */
export interface RedisCommands {
  /** Rejects when the server refuses, or when there is no connection; may wait for one that is being made. */
  send(...args: string[]): Promise<unknown>;
  close(): void;
}

const CONNECT_TIMEOUT_MS = 5_000;
/** Commands that wait for a connection, at most. */
const MAX_WAITING = 1_000;

/** Loads a package by its name. */
type Load = (name: string) => unknown;

const loadPackage: Load = createRequire(__filename);

/**
 * Connects to a `redis://` or `rediss://` address by ioredis or redis (node-redis), whichever is installed, and again
 * whenever the connection is lost.
 *
 * @throws TypeError when neither is installed; the message does not repeat the address, which may hold a password
 */
export function connectToRedis(url: string, load = loadPackage): RedisCommands {
  const address = new URL(url);
  // Names the sorted set of the generations; the clients would take it for an option of theirs.
  address.searchParams.delete('key');
  const ioredis = ifInstalled(load, 'ioredis') as typeof Ioredis | undefined;
  if (ioredis) return byIoredis(ioredis, address.href);
  const nodeRedis = ifInstalled(load, 'redis') as typeof NodeRedis | undefined;
  if (nodeRedis) return byNodeRedis(nodeRedis, address.href);
  throw new TypeError('rate limits in Redis need the package ioredis or redis: npm install ioredis@6');
}

function byIoredis({ Redis }: typeof Ioredis, address: string): RedisCommands {
  const client = new Redis(address, {
    connectTimeout: CONNECT_TIMEOUT_MS,
    // What waits is given up at the first attempt that fails: whoever sent it has long gone on.
    maxRetriesPerRequest: 0,
    // Asks for INFO, which a user for limits alone need not have.
    enableReadyCheck: false,
    // Else it holds the process up for 2 s where the connection is lost already.
    disconnectTimeout: 0,
    connectionName: 'tillgate-limits',
  });
  // Without a listener, a connection that is lost would end the process; the failure comes out of what is sent.
  client.on('error', () => undefined);
  return {
    send: (command = '', ...args) => client.call(command, ...args),
    close: () => client.disconnect(),
  };
}

function byNodeRedis({ createClient }: typeof NodeRedis, address: string): RedisCommands {
  const client = createClient({
    url: address,
    socket: { connectTimeout: CONNECT_TIMEOUT_MS },
    commandsQueueMaxLength: MAX_WAITING,
    name: 'tillgate-limits',
  });
  client.on('error', () => undefined);
  client.connect().catch(() => undefined);
  return {
    send: (...args) => client.sendCommand(args),
    close: () => client.destroy(),
  };
}

function ifInstalled(load: Load, name: string): unknown {
  try {
    return load(name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}

import type * as Ioredis from 'ioredis';
import type * as NodeRedis from 'redis';
import { systemClock, systemSchedule } from '../core/clock';
import type { Clock, Schedule } from '../core/clock';
import { consoleLogger } from '../core/logger';
import type { Logger } from '../core/logger';
import { loadIfInstalled, loadPackage } from './optional-package';
import type { Load } from './optional-package';
import { DEFAULT_KEY, TIMEOUT_MS, WHOLE_EVERY_MS } from './redis';
import { redisConnection } from './redis-client';
import type { RedisConnection } from './redis-client';
import { redisSource } from './redis-source';
import type { GenerationSource } from './source';

/** What a source that is made from an address may be given. */
export interface RedisUrlDependencies {
  readonly clock?: Clock | undefined;
  readonly schedule?: Schedule | undefined;
  readonly logger?: Logger | undefined;
  /** Loads a package by its name. Default: Node's `require`. */
  readonly load?: Load | undefined;
}

const CONNECT_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_MS = 10_000;

/**
 * Makes the source for a `redis://` or, with TLS, `rediss://` address: `rediss://user:password@host:6379/0?key=name`,
 * where `key` names the sorted set. ioredis makes the connection, or redis (node-redis), whichever is installed.
 *
 * @throws TypeError when the address is wrong or neither is installed; the message does not repeat the address.
 */
export function redisFromUrl(url: string, dependencies: RedisUrlDependencies): GenerationSource {
  const { address, key } = readAddress(url);
  const { clock, schedule, logger, load = loadPackage } = dependencies;
  return redisSource({
    connection: connectTo(address, load),
    owned: true,
    key: key ?? DEFAULT_KEY,
    timeoutMs: TIMEOUT_MS,
    wholeEveryMs: WHOLE_EVERY_MS,
    clock: clock ?? systemClock,
    schedule: schedule ?? systemSchedule,
    logger: logger ?? consoleLogger,
  });
}

function readAddress(url: string): { address: string; key: string | undefined } {
  // Node's error repeats its input, and with it the password.
  if (!URL.canParse(url)) throw new TypeError('generations: the redis: address is not a valid URL');
  const address = new URL(url);
  const key = address.searchParams.get('key') || undefined;
  // The clients would take it for an option of theirs.
  address.searchParams.delete('key');
  return { address: address.href, key };
}

function connectTo(address: string, load: Load): RedisConnection {
  const ioredis = loadIfInstalled(load, 'ioredis') as typeof Ioredis | undefined;
  if (ioredis) {
    const options = { connectTimeout: CONNECT_TIMEOUT_MS, keepAlive: KEEP_ALIVE_MS, connectionName: 'tillgate' };
    return redisConnection(new ioredis.Redis(address, options));
  }
  const nodeRedis = loadIfInstalled(load, 'redis') as typeof NodeRedis | undefined;
  if (nodeRedis) {
    const socket = { connectTimeout: CONNECT_TIMEOUT_MS, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS };
    const client = nodeRedis.createClient({ url: address, socket, name: 'tillgate' });
    const connection = redisConnection(client);
    // The failure comes out of whatever is sent.
    client.connect().catch(() => undefined);
    return connection;
  }
  const remedy = 'neither is installed: npm install ioredis@6';
  throw new TypeError(`generations: a redis: address needs the package ioredis or redis, and ${remedy}`);
}

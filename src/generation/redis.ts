import { systemClock, systemSchedule } from '../core/clock';
import type { Clock, Schedule } from '../core/clock';
import { consoleLogger } from '../core/logger';
import type { Logger } from '../core/logger';
import { readOptions } from '../core/options';
import { redisConnection } from './redis-client';
import type { RedisClient } from './redis-client';
import { redisSource } from './redis-source';
import type { PublishingSource } from './source';

/** Options of `redisGenerations()`. */
export interface RedisGenerationsOptions {
  /**
   * A client of ioredis (5, 6) or of redis (node-redis 5, 6), connected to the primary. It stays yours to close; a watch
   * opens another connection by its `duplicate()`.
   */
  readonly client: RedisClient;
  /**
   * Name of the sorted set and of the channel; issuers that share a server need one each. A `keyPrefix` of the client
   * would change the one and not the other: put it here instead. Default `tillgate:generations`.
   */
  readonly key?: string | undefined;
  /** Longest time for one command, in ms. Default 5000. */
  readonly timeoutMs?: number | undefined;
  /** Longest pause between two reads of the whole set while a watch stands, in ms. Default 60000. */
  readonly wholeEveryMs?: number | undefined;
  /**
   * Refuses all tokens after a start until the publisher's sentinel is in the set. `false` for publishers that write
   * none. Default `true`.
   */
  readonly sentinel?: boolean | undefined;
  /** Milliseconds since the epoch. Default: the system's clock. */
  readonly clock?: Clock | undefined;
  readonly schedule?: Schedule | undefined;
  readonly logger?: Logger | undefined;
}

/** Where floors are when nothing else is said. */
export const DEFAULT_KEY = 'tillgate:generations';
/** Longest time for one command, in ms. */
export const TIMEOUT_MS = 5_000;
/** Longest pause between two reads of the whole set, in ms. */
export const WHOLE_EVERY_MS = 60_000;

const OPTIONS = ['client', 'key', 'timeoutMs', 'wholeEveryMs', 'sentinel', 'clock', 'schedule', 'logger'] as const;

/**
 * Floors in a sorted set of Redis (6.2 or later), for reading and for publishing; its pub/sub channel is the hint. The
 * record that any program can write, in this order: `ZADD <key> GT <generation> <client id>`, then
 * `PUBLISH <key> <client id>`.
 *
 * @throws TypeError when an option is wrong.
 * @example
 * ```ts
 * import { Redis } from 'ioredis';
 * import { redisGenerations } from 'tillgate/generations';
 *
 * const generations = redisGenerations({ client: new Redis('rediss://redis.example.com') });
 * ```
 */
export function redisGenerations(options: RedisGenerationsOptions): PublishingSource {
  const given = readOptions('redisGenerations', options, OPTIONS);
  return redisSource({
    connection: redisConnection(options.client),
    owned: false,
    key: given.string('key') ?? DEFAULT_KEY,
    timeoutMs: given.number('timeoutMs', TIMEOUT_MS, { unit: 'ms', min: 1, max: 600_000 }),
    wholeEveryMs: given.number('wholeEveryMs', WHOLE_EVERY_MS, { unit: 'ms', min: 1_000, max: 86_400_000 }),
    sentinel: given.boolean('sentinel', true),
    clock: given.callable('clock', systemClock),
    schedule: given.callable('schedule', systemSchedule),
    logger: options.logger ?? consoleLogger,
  });
}

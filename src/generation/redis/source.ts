import { systemClock, systemSchedule } from '../../core/clock';
import type { Clock } from '../../core/clock';
import type { Dependencies } from '../../core/dependencies';
import { consoleLogger } from '../../core/logger';
import { readOptions } from '../../core/options';
import { requirePublishable } from '../generation';
import { RedisCommands } from './commands';
import { connectToRedis, redisConnection } from './connection';
import type { RedisClient, RedisConnection } from './connection';
import { RedisSubscription } from './subscription';
import { FloorSet } from './floor-set';
import { SENTINEL } from './page';
import { redisReader } from './read';
import { redisTrimmer } from './trim';
import type { GenerationSentinel, PublishingSource } from '../source';
import { loadPackage, readStoreUrl } from '../source-url';
import type { SourceDependencies } from '../source-url';

/** Options of `redisGenerations()`. */
export interface RedisGenerationsOptions extends Pick<Dependencies, 'clock' | 'schedule' | 'logger'> {
  /**
   * A client of ioredis (5, 6) or of redis (node-redis 5, 6), connected to the primary. The caller closes it; a watch
   * opens another connection by its `duplicate()`.
   */
  readonly client: RedisClient;
  /**
   * Name of the sorted set and of the channel; issuers that share a server need one each. A `keyPrefix` of the client
   * would apply to the set only: put it here instead. Default `tillgate:generations`.
   */
  readonly key?: string | undefined;
  /** Longest time for one command, in ms. Default 5000. */
  readonly timeoutMs?: number | undefined;
  /**
   * Longest time until every member of the set has been read again, part by part, while a watch is open, in ms. It
   * bounds how long a floor stays unknown whose writer forgot the PUBLISH; most are found within a minute. Default
   * 86400000.
   */
  readonly wholeEveryMs?: number | undefined;
  /**
   * Longest token age (`maxTokenAgeSeconds`) of all processes that read the set, in ms. `publish()` removes floors that
   * are an hour older still; a process with a longer limit refuses all tokens. Default 86400000.
   */
  readonly maxTokenAgeMs?: number | undefined;
  /**
   * Refuses all tokens after a start until the publisher's sentinel shows that the set is complete; see
   * `GenerationSentinel`. `false` for publishers that write none. Default `true`.
   */
  readonly sentinel?: boolean | undefined;
}

export const DEFAULT_KEY = 'tillgate:generations';

const DAY_MS = 86_400_000;

const OPTIONS = [
  'client',
  'key',
  'timeoutMs',
  'wholeEveryMs',
  'maxTokenAgeMs',
  'sentinel',
  'clock',
  'schedule',
  'logger',
] as const;

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
  readOptions('redisGenerations', options, OPTIONS);
  return openSource(redisConnection(options.client), false, options);
}

/**
 * Makes the source for a `redis://` or, with TLS, `rediss://` URL: `rediss://user:password@host:6379/0?key=name`, where
 * `key` names the sorted set and `sentinel=off` does without a sentinel. Connects by redis (node-redis) or else
 * by ioredis, whichever is installed.
 *
 * @throws TypeError when the URL is wrong or neither is installed; the message does not repeat the URL.
 */
export function sourceFromUrl(url: string, dependencies: SourceDependencies): PublishingSource {
  const { clock, schedule, logger, maxTokenAgeMs, load = loadPackage } = dependencies;
  const { place, sentinel } = readStoreUrl(url, 'redis', 'key');
  const connection = connectToRedis(url, {
    name: 'tillgate',
    needs: 'generations: a redis: URL needs',
    load,
    // Our own limit ends a command, and says what the connection has reported.
    nodeRedis: { commandOptions: { timeout: 0 } },
  });
  return openSource(connection, true, { key: place || undefined, sentinel, maxTokenAgeMs, clock, schedule, logger });
}

/** @param owned - whether the connection is closed with the source */
function openSource(
  connection: RedisConnection,
  owned: boolean,
  options: Omit<RedisGenerationsOptions, 'client'>,
): PublishingSource {
  const given = readOptions('redisGenerations', options, OPTIONS);
  const key = given.string('key') ?? DEFAULT_KEY;
  const timeoutMs = given.number('timeoutMs', 5_000, { unit: 'ms', min: 1, max: 600_000 });
  const wholeEveryMs = given.number('wholeEveryMs', DAY_MS, { unit: 'ms', min: 1_000, max: DAY_MS });
  const maxTokenAgeMs = given.number('maxTokenAgeMs', DAY_MS, { unit: 'ms', min: 1_000, integer: true });
  const withSentinel = given.boolean('sentinel', true);
  const clock = given.callable('clock', systemClock);
  const now = strictlyIncreasing(clock);
  const schedule = given.callable('schedule', systemSchedule);
  const logger = options.logger ?? consoleLogger;
  const subscriptions = new Set<RedisSubscription>();
  // After a failover the commands go to another server than the subscription's.
  const onBreak = (error: unknown): void => subscriptions.forEach((subscription) => subscription.end(error));
  const commands = new RedisCommands({ connection, owned, timeoutMs, schedule, onBreak });
  const set = new FloorSet(commands, key);
  const trim = redisTrimmer({ commands, set, maxTokenAgeMs, clock, schedule, logger });

  async function watch(wake: () => void, lost?: (error: unknown) => void): Promise<() => void> {
    const subscription: RedisSubscription = new RedisSubscription({
      connection: commands.duplicate(),
      channel: key,
      now,
      timeoutMs,
      schedule,
      wake,
      lost(error) {
        subscriptions.delete(subscription);
        lost?.(error);
      },
    });
    subscriptions.add(subscription);
    await subscription.start().catch((error: unknown) => {
      subscriptions.delete(subscription);
      throw error;
    });
    return () => {
      subscriptions.delete(subscription);
      subscription.stop();
    };
  }

  const sentinel: GenerationSentinel = {
    read: async () => (await set.marks()).sentinel,
    async write(generation) {
      await commands.run('ZADD', key, 'GT', String(generation), SENTINEL);
    },
  };

  return {
    ...(withSentinel && { sentinel }),
    read: redisReader({ set, subscriptions, now, wholeEveryMs, logger }),
    watch,
    async publish(clientId, generation) {
      requirePublishable(clientId, generation);
      // Sent in this order: a process that receives the message finds the floor.
      await Promise.all([
        commands.run('ZADD', key, 'GT', String(generation), clientId),
        commands.run('PUBLISH', key, clientId),
      ]);
      trim.request();
    },
    async close() {
      for (const subscription of subscriptions) subscription.stop();
      subscriptions.clear();
      await trim.close();
      commands.close();
    },
  };
}

/** A fraction of a ms that a double of this size still represents. */
const STEP_MS = 2 ** -10;

/** A clock that never returns the same time twice, which orders any two events. */
function strictlyIncreasing(clock: Clock): Clock {
  let latestMs = 0;
  return () => (latestMs = Math.max(latestMs + STEP_MS, Math.floor(clock())));
}

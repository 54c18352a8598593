import type { Clock, Schedule } from '../core/clock';
import type { Logger } from '../core/logger';
import type { RedisConnection } from './redis-client';
import { RedisCommands } from './redis-commands';
import { RedisHints } from './redis-hints';
import { redisReader } from './redis-read';
import { SENTINEL, readSentinel } from './redis-floors';
import { requireFloor } from './require-floor';
import type { GenerationSentinel, PublishingSource } from './source';

/** One sorted set behind one connection. */
export interface RedisSourceOptions {
  readonly connection: RedisConnection;
  /** Whether the connection is closed with the source. */
  readonly owned: boolean;
  readonly key: string;
  readonly timeoutMs: number;
  readonly wholeEveryMs: number;
  /** Whether the store carries a sentinel. */
  readonly sentinel: boolean;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly logger: Logger;
}

/** Makes the source of a connection, whichever client it comes from. */
export function redisSource(options: RedisSourceOptions): PublishingSource {
  const { key, timeoutMs, schedule } = options;
  const subscriptions = new Set<RedisHints>();
  const now = strictly(options.clock);
  // Commands that now reach another server, after a failover, would be answered beside the hints of the old one.
  const onBreak = (error: unknown): void => subscriptions.forEach((hints) => hints.end(error));
  const commands = new RedisCommands({ ...options, onBreak });

  async function watch(wake: () => void, lost?: (error: unknown) => void): Promise<() => void> {
    const connection = commands.duplicate();
    const hints: RedisHints = new RedisHints({
      connection,
      channel: key,
      now,
      timeoutMs,
      schedule,
      wake,
      lost: onLost,
    });
    function onLost(error: unknown): void {
      subscriptions.delete(hints);
      lost?.(error);
    }
    subscriptions.add(hints);
    await hints.start().catch((error: unknown) => {
      subscriptions.delete(hints);
      throw error;
    });
    return () => {
      subscriptions.delete(hints);
      hints.stop();
    };
  }

  const sentinel: GenerationSentinel = {
    read: () => readSentinel(commands, key),
    async write(generation) {
      await commands.run('ZADD', key, 'GT', String(generation), SENTINEL);
    },
  };

  return {
    ...(options.sentinel && { sentinel }),
    read: redisReader({ ...options, commands, subscriptions, now }),
    watch,
    async publish(clientId, generation) {
      requireFloor(clientId, generation);
      // In one go and in this order: whoever hears the hint finds the floor.
      await Promise.all([
        commands.run('ZADD', key, 'GT', String(generation), clientId),
        commands.run('PUBLISH', key, clientId),
      ]);
    },
    close() {
      for (const hints of subscriptions) hints.stop();
      subscriptions.clear();
      commands.close();
      return Promise.resolve();
    },
  };
}

/** A part of a ms that a double can still tell apart, for some hundred years to come. */
const STEP_MS = 2 ** -10;

/** A clock that never answers the same time twice, so that of two events one is always the earlier. */
function strictly(clock: Clock): Clock {
  let latestMs = 0;
  return () => (latestMs = Math.max(latestMs + STEP_MS, Math.floor(clock())));
}

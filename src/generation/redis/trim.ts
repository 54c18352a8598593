import type { Clock, Schedule } from '../../core/clock';
import type { Logger } from '../../core/logger';
import { KEPT_LONGER_MS } from '../floors';
import { FIRST_TIME_MS } from '../generation';
import { Trimmer } from '../trimmer';
import type { RedisCommands } from './commands';
import type { FloorSet } from './floor-set';
import { HORIZON } from './page';

/** How a publisher removes old floors. */
export interface RedisTrimOptions {
  readonly commands: RedisCommands;
  readonly set: FloorSet;
  /** Longest token age of all processes that read the set, in ms. */
  readonly maxTokenAgeMs: number;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly logger: Logger;
}

/** A removal costs four short commands, whether it is refused or not. */
const PAUSE_AFTER_FAILURE_MS = 1_000;
/** How often the horizon is written while nothing is removed. */
const HORIZON_INTERVAL_MS = 60_000;
/** Members removed by one command. */
const BATCH = 1_000;

/**
 * Removes the floors of a set. First it writes the horizon, which tells processes with a longer token age limit that the set
 * is not complete for them.
 */
export function redisTrimmer({ commands, set, maxTokenAgeMs, clock, schedule, logger }: RedisTrimOptions): Trimmer {
  let horizonWrittenMs = -Infinity;

  /** Returns whether there is more to remove. */
  async function trim(): Promise<boolean> {
    const nowMs = await earlierNowMs();
    const cutoff = nowMs - maxTokenAgeMs - KEPT_LONGER_MS;
    if (cutoff <= FIRST_TIME_MS) return false;
    const [oldest, last, { sentinel }] = await Promise.all([
      set.oldestBelow(cutoff, 1),
      set.oldestBelow(cutoff, BATCH),
      set.marks(),
    ]);
    const isDue = Math.abs(nowMs - horizonWrittenMs) >= HORIZON_INTERVAL_MS;
    if (oldest === undefined && !isDue) return false;
    // Never the sentinel: nothing is removed while it is that old.
    if (sentinel !== undefined && sentinel >= FIRST_TIME_MS && sentinel < cutoff) return false;
    await commands.run('ZADD', set.key, 'GT', String(cutoff), HORIZON);
    horizonWrittenMs = nowMs;
    if (oldest === undefined) return false;
    // By score, so that a floor that has risen in the meantime stays. Floors of the same ms go together.
    const upTo = last === undefined ? `(${cutoff}` : last > oldest ? `(${last}` : String(last);
    await commands.run('ZREMRANGEBYSCORE', set.key, String(FIRST_TIME_MS), upTo);
    return last !== undefined;
  }

  /** By this clock and that of Redis, if TIME is permitted: a clock that is ahead must not remove what is still needed. */
  async function earlierNowMs(): Promise<number> {
    const reply = await commands.run('TIME').catch(() => undefined);
    const seconds = Array.isArray(reply) ? Number(reply[0]) : NaN;
    const nowMs = Math.floor(clock());
    return Number.isFinite(seconds) ? Math.min(nowMs, seconds * 1000) : nowMs;
  }

  const warn = (detail: string): void =>
    logger.warn({ key: set.key, detail }, 'old floors cannot be removed from Redis');
  return new Trimmer({ trim, warn, pauseAfterFailureMs: PAUSE_AFTER_FAILURE_MS, schedule });
}

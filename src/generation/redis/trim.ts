import { withTimeLimit } from '../../core/clock';
import type { Clock, Schedule, Timer } from '../../core/clock';
import type { Logger } from '../../core/logger';
import { KEPT_LONGER_MS } from '../floors';
import { FIRST_TIME_MS } from '../generation';
import type { RedisCommands } from './commands';
import { HORIZON } from './page';
import type { FloorSet } from './floor-set';
import { describeFailure, noResponse } from '../source-error';

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

const MIN_INTERVAL_MS = 1_000;
/** How often the horizon is written while nothing is removed. */
const HORIZON_INTERVAL_MS = 60_000;
/** Members removed by one command. */
const BATCH = 1_000;
/** How long `close()` waits for a removal. */
const CLOSE_TIMEOUT_MS = 1_000;

/**
 * Removes the floors that discard no token any more, after publishes and at most once a second. First it writes the
 * horizon, which tells processes with a longer token age limit that the set is not complete for them.
 */
export class RedisTrim {
  readonly #options: RedisTrimOptions;
  #requested = false;
  /** Until the next removal may start. */
  #pause: Timer | undefined;
  #running: Promise<void> | undefined;
  #horizonWrittenMs = -Infinity;
  #failing = false;
  #closed = false;

  constructor(options: RedisTrimOptions) {
    this.#options = options;
  }

  /** Called after a publish; returns immediately. */
  request(): void {
    this.#requested = true;
    if (!this.#pause && !this.#running) this.#pauseFor(0);
  }

  /** Ends after a removal that is due, so that a process which publishes once and ends removes something too. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#pause?.cancel();
    if (this.#requested) this.#start();
    if (!this.#running) return;
    const { schedule } = this.#options;
    await withTimeLimit(this.#running, CLOSE_TIMEOUT_MS, schedule, noResponse).catch(() => undefined);
  }

  #pauseFor(ms: number): void {
    if (this.#closed) return;
    this.#pause = this.#options.schedule(() => {
      this.#pause = undefined;
      if (this.#requested) this.#start();
    }, ms);
  }

  #start(): void {
    this.#requested = false;
    this.#running ??= this.#run().then(() => {
      this.#running = undefined;
      this.#pauseFor(MIN_INTERVAL_MS);
    });
  }

  async #run(): Promise<void> {
    const { set, logger } = this.#options;
    try {
      if (await this.#trim()) this.#requested = true;
      this.#failing = false;
    } catch (error) {
      const detail = describeFailure(error);
      if (!this.#failing) logger.warn({ key: set.key, detail }, 'old floors cannot be removed from Redis');
      this.#failing = true;
    }
  }

  /** Returns whether there is more to remove. */
  async #trim(): Promise<boolean> {
    const { commands, set, maxTokenAgeMs } = this.#options;
    const nowMs = await this.#earlierNowMs();
    const cutoff = nowMs - maxTokenAgeMs - KEPT_LONGER_MS;
    if (cutoff <= FIRST_TIME_MS) return false;
    const [oldest, last, { sentinel }] = await Promise.all([
      set.oldestBelow(cutoff, 1),
      set.oldestBelow(cutoff, BATCH),
      set.marks(),
    ]);
    const isDue = Math.abs(nowMs - this.#horizonWrittenMs) >= HORIZON_INTERVAL_MS;
    if (oldest === undefined && !isDue) return false;
    // Never the sentinel: nothing is removed while it is that old.
    if (sentinel !== undefined && sentinel >= FIRST_TIME_MS && sentinel < cutoff) return false;
    await commands.run('ZADD', set.key, 'GT', String(cutoff), HORIZON);
    this.#horizonWrittenMs = nowMs;
    if (oldest === undefined) return false;
    // By score, so that a floor that has risen in the meantime stays. Floors of the same ms go together.
    const upTo = last === undefined ? `(${cutoff}` : last > oldest ? `(${last}` : String(last);
    await commands.run('ZREMRANGEBYSCORE', set.key, String(FIRST_TIME_MS), upTo);
    return last !== undefined;
  }

  /** By this clock and that of Redis, if TIME is permitted: a clock that is ahead must not remove what is still needed. */
  async #earlierNowMs(): Promise<number> {
    const { commands, clock } = this.#options;
    const reply = await commands.run('TIME').catch(() => undefined);
    const seconds = Array.isArray(reply) ? Number(reply[0]) : NaN;
    const nowMs = Math.floor(clock());
    return Number.isFinite(seconds) ? Math.min(nowMs, seconds * 1000) : nowMs;
  }
}

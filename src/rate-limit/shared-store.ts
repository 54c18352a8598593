import type { Store } from 'express-rate-limit';
import { systemClock, systemSchedule, withTimeLimit } from '../core/clock';
import type { Clock } from '../core/clock';
import type { Logger } from '../core/logger';
import { MemoryRateStore } from './memory-store';
import type { Hits } from './memory-store';

/** A connection to Redis that takes commands. */
export interface RedisCommands {
  /** Rejects when the server refuses, or when there is no connection; may wait for one that is being made. */
  send(args: readonly string[]): Promise<unknown>;
  close(): void;
}

/** Options of {@link SharedRateStore}. */
export interface SharedRateStoreOptions {
  readonly redis: RedisCommands;
  /** Begins every key in Redis; processes with the same prefix share the counts. */
  readonly prefix: string;
  /** Length of a window, in ms. */
  readonly windowMs: number;
  readonly logger: Logger;
  /** How long a request waits for Redis at most, in ms. Default 500. */
  readonly timeoutMs?: number;
  readonly clock?: Clock;
}

/** Counts a hit in the window of a key. The window begins with its first hit and expires by itself: `{ hits, ms left }`. */
const HIT = `local hits = redis.call('INCR', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  left = tonumber(ARGV[1])
  redis.call('PEXPIRE', KEYS[1], left)
end
return { hits, left }`;

/** A key that has expired meanwhile must not begin again, without an end. */
const TAKE_BACK = `if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('DECR', KEYS[1]) end`;

const FORGET = `redis.call('DEL', KEYS[1])`;

const TIMEOUT_MS = 500;
/** After a failure, requests do not wait for Redis for this long. */
const PAUSE_MS = 1_000;

/**
 * Counts requests per key in Redis, so that several processes share one quota. Each process counts in memory too, all
 * the time: while Redis fails it uses its own count, so an outage neither refuses requests nor lifts the limit.
 */
export class SharedRateStore implements Store {
  readonly #local: MemoryRateStore;
  readonly #options: SharedRateStoreOptions;
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  #failing = false;
  #pausedUntilMs = 0;

  constructor(options: SharedRateStoreOptions) {
    const { windowMs, timeoutMs = TIMEOUT_MS, clock = systemClock } = options;
    this.#options = options;
    this.#local = new MemoryRateStore({ windowMs, clock });
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
  }

  /** Never rejects: an outage of Redis must not become one of the API. */
  async increment(key: string): Promise<Hits> {
    const local = this.#local.increment(key);
    const shared = await this.#run(readCount, HIT, key, String(this.#options.windowMs));
    return shared ? { totalHits: shared.hits, resetTime: new Date(this.#clock() + shared.leftMs) } : local;
  }

  async decrement(key: string): Promise<void> {
    this.#local.decrement(key);
    await this.#run(ignore, TAKE_BACK, key);
  }

  async resetKey(key: string): Promise<void> {
    this.#local.resetKey(key);
    await this.#run(ignore, FORGET, key);
  }

  shutdown(): void {
    this.#options.redis.close();
  }

  /** Runs a script on a key; `undefined` while Redis does not respond. */
  async #run<Result>(
    read: (reply: unknown) => Result,
    script: string,
    key: string,
    ...args: string[]
  ): Promise<Result | undefined> {
    const { redis, prefix, logger } = this.#options;
    const nowMs = this.#clock();
    if (nowMs < this.#pausedUntilMs) return undefined;
    // One request tries whether Redis is back; the others do not wait for its result.
    if (this.#failing) this.#pausedUntilMs = nowMs + PAUSE_MS;
    try {
      const reply = redis.send(['EVAL', script, '1', prefix + key, ...args]);
      const result = read(await withTimeLimit(reply, this.#timeoutMs, systemSchedule, timedOut));
      if (this.#failing) logger.info({}, 'rate limit: Redis counts again, for all processes together');
      this.#failing = false;
      this.#pausedUntilMs = 0;
      return result;
    } catch (error) {
      this.#pausedUntilMs = this.#clock() + PAUSE_MS;
      if (!this.#failing) {
        logger.warn({ error: codeOf(error) }, 'rate limit: Redis does not count, each process uses its own count');
      }
      this.#failing = true;
      return undefined;
    }
  }
}

function readCount(reply: unknown): { hits: number; leftMs: number } {
  const [hits, leftMs] = Array.isArray(reply) ? (reply as unknown[]) : [];
  if (typeof hits === 'number' && typeof leftMs === 'number') return { hits, leftMs };
  throw failure('unexpected reply');
}

function ignore(): void {}

function timedOut(): Error {
  return failure('TIMEOUT');
}

function failure(code: string): Error {
  return Object.assign(new Error(code), { code });
}

/** The error prefix of Redis (`NOPERM`, `OOM`) or the code of the connection failure; neither contains a key. */
function codeOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? /^[A-Z]{3,20}\b/.exec(message)?.[0] ?? 'no connection';
}

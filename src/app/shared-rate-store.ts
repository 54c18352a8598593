import { MemoryStore } from 'express-rate-limit';
import type { ClientRateLimitInfo, Options, Store } from 'express-rate-limit';
import type { Logger } from '../index';

/** A connection to Redis that takes commands. */
export interface RedisCommands {
  /** Rejects when the server refuses, or when there is no connection; may wait for one that is being made. */
  send(args: readonly string[]): Promise<unknown>;
  close(): void;
}

/** Options of {@link SharedRateStore}. */
export interface SharedRateStoreOptions {
  readonly redis: RedisCommands;
  /** Begins every key in Redis; whoever has the same one shares the counts. */
  readonly prefix: string;
  readonly logger: Logger;
  /** How long a request waits for Redis at most, in ms. Default 500. */
  readonly timeoutMs?: number;
  /** Milliseconds since the epoch. */
  readonly clock?: () => number;
}

/** Counts a hit in the window of a key, which begins with its first hit and ends by itself: `{ hits, ms left }`. */
const HIT = `local hits = redis.call('INCR', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  left = tonumber(ARGV[1])
  redis.call('PEXPIRE', KEYS[1], left)
end
return { hits, left }`;

/** A key that has ended meanwhile must not begin again, and without an end. */
const TAKE_BACK = `if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('DECR', KEYS[1]) end`;

const FORGET = `redis.call('DEL', KEYS[1])`;

const TIMEOUT_MS = 500;
/** Pause after a failure: of the requests that come meanwhile, none waits for Redis. */
const PAUSE_MS = 1_000;

/**
 * Counts requests per key in Redis, so that several processes share one quota. While Redis fails, each process goes by
 * its own count, which it keeps all the time: nobody is refused for the outage, and no count is without a bound.
 */
export class SharedRateStore implements Store {
  readonly #here = new MemoryStore();
  readonly #redis: RedisCommands;
  readonly #prefix: string;
  readonly #logger: Logger;
  readonly #timeoutMs: number;
  readonly #clock: () => number;
  #windowMs = 0;
  #failing = false;
  #pausedUntilMs = 0;

  constructor({ redis, prefix, logger, timeoutMs = TIMEOUT_MS, clock = Date.now }: SharedRateStoreOptions) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#logger = logger;
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
  }

  init(options: Options): void {
    this.#windowMs = options.windowMs;
    this.#here.init(options);
  }

  /** Never rejects: an outage of Redis must not become one of the API. */
  async increment(key: string): Promise<ClientRateLimitInfo> {
    // Its parts: the object itself goes on counting.
    const { totalHits, resetTime } = await this.#here.increment(key);
    const shared = await this.#ask(readCount, HIT, key, String(this.#windowMs));
    return shared
      ? { totalHits: shared.hits, resetTime: new Date(this.#clock() + shared.leftMs) }
      : { totalHits, resetTime };
  }

  async decrement(key: string): Promise<void> {
    await this.#here.decrement(key);
    await this.#ask(ignore, TAKE_BACK, key);
  }

  async resetKey(key: string): Promise<void> {
    await this.#here.resetKey(key);
    await this.#ask(ignore, FORGET, key);
  }

  shutdown(): void {
    this.#here.shutdown();
    this.#redis.close();
  }

  /** What a script makes of a key, or `undefined` when Redis does not say. */
  async #ask<Answer>(
    read: (reply: unknown) => Answer,
    script: string,
    key: string,
    ...args: string[]
  ): Promise<Answer | undefined> {
    const nowMs = this.#clock();
    if (nowMs < this.#pausedUntilMs) return undefined;
    // One request tries whether Redis is back; the others need not wait for what it finds out.
    if (this.#failing) this.#pausedUntilMs = nowMs + PAUSE_MS;
    try {
      const reply = this.#redis.send(['EVAL', script, '1', this.#prefix + key, ...args]);
      const answer = read(await within(reply, this.#timeoutMs));
      if (this.#failing) this.#logger.info({}, 'rate limit: Redis counts again, for all processes together');
      this.#failing = false;
      this.#pausedUntilMs = 0;
      return answer;
    } catch (error) {
      this.#pausedUntilMs = this.#clock() + PAUSE_MS;
      if (!this.#failing) {
        this.#logger.warn(
          { error: codeOf(error) },
          'rate limit: Redis does not count, each process goes by its own count',
        );
      }
      this.#failing = true;
      return undefined;
    }
  }
}

function readCount(reply: unknown): { hits: number; leftMs: number } {
  const [hits, leftMs] = Array.isArray(reply) ? (reply as unknown[]) : [];
  if (typeof hits === 'number' && typeof leftMs === 'number') return { hits, leftMs };
  throw Object.assign(new Error(), { code: 'unexpected answer' });
}

function ignore(): void {}

/** The work itself goes on; what becomes of it later is nobody's failure any more. */
function within<Value>(work: Promise<Value>, timeoutMs: number): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(Object.assign(new Error(), { code: 'TIMEOUT' })), timeoutMs);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** The first word of what Redis says (`NOPERM`, `OOM`), or the code of what the connection died of: it names no key. */
function codeOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? /^[A-Z]{3,20}\b/.exec(message)?.[0] ?? 'no connection';
}

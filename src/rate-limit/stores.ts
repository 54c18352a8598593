import { createRequire } from 'node:module';
import { MemoryStore } from 'express-rate-limit';
import type { ClientRateLimitInfo, Options, Store } from 'express-rate-limit';
import { systemClock, systemSchedule, withTimeLimit } from '../core/clock';
import { errorLabel } from '../core/logger';
import type { Logger } from '../core/logger';
import { Outage } from '../core/outage';
import { requirePackages } from '../core/required-packages';

/**
 * Counts requests per key in this process. Past `maxKeys` keys, new ones share a count with their address (what precedes
 * the first blank of the key), and then with all others: made-up ids neither fill the memory nor reset a count.
 */
export class LocalRateStore extends MemoryStore {
  readonly #maxKeys: number;

  constructor(maxKeys = Infinity) {
    super();
    this.#maxKeys = maxKeys;
  }

  override get(key: string): Promise<ClientRateLimitInfo | undefined> {
    return super.get(this.#countedAs(key));
  }

  override async increment(key: string): Promise<ClientRateLimitInfo> {
    const counted = this.#countedAs(key);
    const before = await super.get(counted);
    // A clock that stepped back must not stretch a window.
    if (Number(before?.resetTime) > Date.now() + this.windowMs) await this.resetKey(counted);
    const counting = super.increment(counted);
    // Copied before anything waits: the store's own object also counts the requests that arrive meanwhile.
    const { totalHits, resetTime } = this.current.get(counted) ?? (await counting);
    return { totalHits, resetTime };
  }

  override decrement(key: string): Promise<void> {
    return super.decrement(this.#countedAs(key));
  }

  #countedAs(key: string): string {
    const [address = ''] = key.split(' ');
    const size = this.current.size + this.previous.size;
    const isKnown = (one: string): boolean => this.current.has(one) || this.previous.has(one);
    return [key, address].find((one, shared) => isKnown(one) || size < this.#maxKeys * (shared + 1)) ?? '';
  }
}

/** A connection to Redis that takes commands. */
export interface RedisCommands {
  /** Rejects when the server refuses, or when there is no connection; may wait for one that is being made. */
  send(args: readonly string[]): Promise<unknown>;
  close(): void;
}

/** The class of rate-limit-redis, which is loaded only where it is used. */
type RedisStore = new (options: {
  readonly prefix: string;
  readonly sendCommand: (...args: string[]) => Promise<unknown>;
}) => { init(options: Pick<Options, 'windowMs'>): Promise<void>; increment: Store['increment'] };

/** How long a request waits for Redis at most. */
const TIMEOUT_MS = 500;
/** After a failure, requests do not wait for Redis for this long. */
const PAUSE_MS = 1_000;

/**
 * Counts requests per key in Redis by rate-limit-redis, so that several processes share one quota. Each process counts
 * by itself too, all the time: while Redis fails it uses its own count, so an outage neither refuses requests nor lifts
 * the limit.
 */
export class SharedRateStore extends LocalRateStore {
  readonly #redis: RedisCommands;
  readonly #counts: InstanceType<RedisStore>;
  readonly #logger: Logger;
  readonly #outage = new Outage({ firstMs: PAUSE_MS, longestMs: PAUSE_MS }, systemClock, () => 0);
  /** Settles when the scripts are in Redis. */
  #loading: Promise<void> | undefined;
  #isTrying = false;

  /** Processes with the same `prefix`, which begins every key in Redis, share the counts. */
  constructor(connect: () => RedisCommands, prefix: string, logger: Logger) {
    super();
    requirePackages('counting requests in Redis', ['rate-limit-redis']);
    const { RedisStore } = createRequire(__filename)('rate-limit-redis') as { readonly RedisStore: RedisStore };
    const redis = connect();
    this.#redis = redis;
    this.#counts = new RedisStore({ prefix, sendCommand: (...args) => redis.send(args) });
    this.#logger = logger;
  }

  /** Never rejects: an outage of Redis must not become one of the API. */
  override async increment(key: string): Promise<ClientRateLimitInfo> {
    const local = await super.increment(key);
    // One request tries whether Redis is back; the others do not wait for its result.
    if (this.#outage.failures > 0 && (this.#outage.waitMs > 0 || this.#isTrying)) return local;
    this.#isTrying = true;
    try {
      const shared = await withTimeLimit(this.#incrementShared(key), TIMEOUT_MS, systemSchedule, timedOut);
      this.#outage.end((fields) =>
        this.#logger.info(fields, 'rate limit: Redis counts again, for all processes together'),
      );
      return shared;
    } catch (error) {
      // rate-limit-redis keeps a script that could not be loaded as a rejected promise: load it again.
      this.#loading = undefined;
      this.#outage.fail(labelOf(error), (fields) => {
        this.#logger.warn(fields, 'rate limit: Redis does not count, each process uses its own count');
      });
      return local;
    } finally {
      this.#isTrying = false;
    }
  }

  override shutdown(): void {
    super.shutdown();
    this.#redis.close();
  }

  async #incrementShared(key: string): Promise<ClientRateLimitInfo> {
    await (this.#loading ??= this.#counts.init({ windowMs: this.windowMs }));
    return this.#counts.increment(key);
  }
}

function timedOut(): Error {
  return Object.assign(new Error(), { code: 'TIMEOUT' });
}

/** The error prefix of Redis (`NOPERM`, `OOM`), or name and code; none of them contains a key. */
function labelOf(error: unknown): string {
  return /^[A-Z]{3,20}\b/.exec((error as Error).message)?.[0] ?? errorLabel(error);
}

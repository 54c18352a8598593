import type { ClientRateLimitInfo, Store } from 'express-rate-limit';
import { LRUCache } from 'lru-cache';
import { systemClock } from '../core/clock';
import type { Clock } from '../core/clock';

/** Options of {@link RateStore}. */
export interface RateStoreOptions {
  /** Length of a window, in ms. */
  readonly windowMs: number;
  /** Keys that are counted at once, at most. Default 20000: five megabytes. */
  readonly maxKeys?: number;
  readonly clock?: Clock;
}

interface Window {
  totalHits: number;
  readonly resetTime: Date;
}

/**
 * Counts requests per key in bounded memory: keys are made of ids that nobody has checked yet, and a flood of them must
 * not fill the process. Where there are too many, those that were not heard of for longest are forgotten.
 */
export class RateStore implements Store {
  /** The counts are in this process only. */
  readonly localKeys = true;
  readonly #windowMs: number;
  readonly #clock: Clock;
  readonly #windows: LRUCache<string, Window>;

  constructor({ windowMs, maxKeys = 20_000, clock = systemClock }: RateStoreOptions) {
    this.#windowMs = windowMs;
    this.#clock = clock;
    this.#windows = new LRUCache({ max: maxKeys });
  }

  increment(key: string): ClientRateLimitInfo {
    const now = this.#clock();
    const known = this.#windows.get(key);
    const fresh = known && known.resetTime.getTime() > now;
    const current = fresh ? known : { totalHits: 0, resetTime: new Date(now + this.#windowMs) };
    current.totalHits++;
    if (!fresh) this.#windows.set(key, current);
    return { totalHits: current.totalHits, resetTime: current.resetTime };
  }

  decrement(key: string): void {
    const known = this.#windows.get(key);
    if (known && known.totalHits > 0) known.totalHits--;
  }

  resetKey(key: string): void {
    this.#windows.delete(key);
  }
}

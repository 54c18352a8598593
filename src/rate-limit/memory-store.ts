import type { Store } from 'express-rate-limit';
import { systemClock } from '../core/clock';
import type { Clock } from '../core/clock';

/** Options of {@link MemoryRateStore}. */
export interface MemoryRateStoreOptions {
  /** Length of a window, in ms. */
  readonly windowMs: number;
  /** Number of windows from which on new keys share windows. Default: no bound. */
  readonly maxKeys?: number;
  /** The key that a new key is counted under once there are too many. Default: the key itself. */
  readonly sharedKey?: (key: string) => string;
  readonly clock?: Clock;
}

/** Hits within one window, as express-rate-limit takes them. */
export interface Hits {
  readonly totalHits: number;
  readonly resetTime: Date;
}

interface Window {
  hits: number;
  readonly endMs: number;
}

/**
 * Counts requests per key in memory, in fixed windows. A live window is never dropped for a new key, so that made-up
 * keys cannot reset a count; instead, new keys share windows once there are `maxKeys`.
 */
export class MemoryRateStore implements Store {
  /** The counts are in this process only. */
  readonly localKeys = true;
  readonly #windowMs: number;
  readonly #maxKeys: number;
  readonly #sharedKey: (key: string) => string;
  readonly #clock: Clock;
  /** In the order in which they began, and so in which they end. */
  readonly #windows = new Map<string, Window>();

  constructor(options: MemoryRateStoreOptions) {
    this.#windowMs = options.windowMs;
    this.#maxKeys = options.maxKeys ?? Infinity;
    this.#sharedKey = options.sharedKey ?? ((key) => key);
    this.#clock = options.clock ?? systemClock;
  }

  get(key: string): Hits | undefined {
    const window = this.#find(key);
    return window && this.#toHits(window);
  }

  increment(key: string): Hits {
    const window = this.#live(key) ?? this.#begin(key);
    window.hits++;
    return this.#toHits(window);
  }

  decrement(key: string): void {
    const window = this.#find(key);
    if (window && window.hits > 0) window.hits--;
  }

  resetKey(key: string): void {
    this.#windows.delete(key);
  }

  /** The window that a key is counted in, its own or a shared one. */
  #find(key: string): Window | undefined {
    return this.#live(key) ?? this.#live(this.#sharedKey(key));
  }

  #live(key: string): Window | undefined {
    const window = this.#windows.get(key);
    return window && this.#isLive(window) ? window : undefined;
  }

  /** A clock that stepped back must not stretch a window: one that would last longer than a whole window has ended. */
  #isLive({ endMs }: Window): boolean {
    const leftMs = endMs - this.#clock();
    return leftMs > 0 && leftMs <= this.#windowMs;
  }

  #begin(key: string): Window {
    this.#dropEnded();
    if (this.#windows.size < this.#maxKeys) return this.#add(key);
    const shared = this.#sharedKey(key);
    const known = this.#live(shared);
    if (known) return known;
    // Even addresses can be too many to remember.
    if (this.#windows.size >= 2 * this.#maxKeys) this.#windows.delete(this.#windows.keys().next().value ?? '');
    return this.#add(shared);
  }

  #add(key: string): Window {
    const window = { hits: 0, endMs: this.#clock() + this.#windowMs };
    this.#windows.delete(key);
    this.#windows.set(key, window);
    return window;
  }

  #dropEnded(): void {
    for (const [key, window] of this.#windows) {
      if (this.#isLive(window)) return;
      this.#windows.delete(key);
    }
  }

  /** express-rate-limit compares `resetTime` with the system's clock. */
  #toHits({ hits, endMs }: Window): Hits {
    return { totalHits: hits, resetTime: new Date(Date.now() + endMs - this.#clock()) };
  }
}

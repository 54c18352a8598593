import { systemClock } from './clock';
import type { Clock } from './clock';

/** Longest `Retry-After`, in seconds: a caller should notice soon that the outage is over. */
const LONGEST_RETRY_AFTER_SECONDS = 30;

/** The value of `Retry-After` (RFC 9110 section 10.2.3) for a pause: whole seconds, from 1 to 30. */
export function retryAfterSeconds(waitMs: number): number {
  return Math.min(LONGEST_RETRY_AFTER_SECONDS, Math.max(1, Math.ceil(waitMs / 1000)));
}

/**
 * The outages of something that is retried. Spaces the attempts, and logs twice per outage, however long it lasts: the
 * first failure, and the recovery with the duration.
 */
export class Outage {
  readonly #bounds: BackOffBounds;
  readonly #clock: Clock;
  readonly #random: () => number;
  #sinceMs = 0;
  #retryAtMs = -Infinity;
  /** Failures in a row; 0 when there is no outage. */
  failures = 0;
  /** Why the last attempt failed; `undefined` when there is no outage. */
  lastError: string | undefined;

  constructor(bounds: BackOffBounds, clock: Clock = systemClock, random: () => number = Math.random) {
    this.#bounds = bounds;
    this.#clock = clock;
    this.#random = random;
  }

  /**
   * Notes a failed attempt.
   *
   * @param log - called for the first failure of an outage
   * @returns the pause before the next attempt, in ms
   */
  fail(detail: string, log: (fields: { readonly detail: string }) => void): number {
    const nowMs = this.#clock();
    const pauseMs = backOffMs(++this.failures, this.#bounds, this.#random);
    this.#retryAtMs = nowMs + pauseMs;
    this.lastError = detail;
    if (this.failures === 1) {
      this.#sinceMs = nowMs;
      log({ detail });
    }
    return pauseMs;
  }

  /**
   * Notes a successful attempt.
   *
   * @param log - called if it ends an outage
   */
  end(log: (fields: { readonly failures: number; readonly outageMs: number }) => void): void {
    const { failures } = this;
    if (failures === 0) return;
    this.failures = 0;
    this.lastError = undefined;
    this.#retryAtMs = -Infinity;
    log({ failures, outageMs: Math.max(0, this.#clock() - this.#sinceMs) });
  }

  /** What is left of the pause after the last failure, in ms. A pause that seems longer than any is over: the clock has stepped back. */
  get waitMs(): number {
    const waitMs = this.#retryAtMs - this.#clock();
    return waitMs > 0 && waitMs <= this.#bounds.longestMs ? waitMs : 0;
  }
}

/** Bounds of an exponential back-off, in ms. */
interface BackOffBounds {
  readonly firstMs: number;
  readonly longestMs: number;
}

/**
 * Pause in ms before the next attempt after `failures` in a row (1 or more): doubled each time up to the longest, then
 * cut by up to a half at random, so that a fleet does not come back in step.
 */
function backOffMs(failures: number, { firstMs, longestMs }: BackOffBounds, random: () => number): number {
  const exponentialMs = Math.min(longestMs, firstMs * 2 ** (failures - 1));
  return exponentialMs * (1 - random() / 2);
}

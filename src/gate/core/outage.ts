import { systemClock, type Clock } from './clock';

/** Longest `Retry-After`, in seconds: a caller should notice soon that the outage is over. */
const LONGEST_RETRY_AFTER_SECONDS = 30;

/** The value of `Retry-After` (RFC 9110 section 10.2.3) for a pause: whole seconds, from 1 to 30. */
export function retryAfterSeconds(waitMs: number): number {
  return Math.min(LONGEST_RETRY_AFTER_SECONDS, Math.max(1, Math.ceil(waitMs / 1000)));
}

/** Spaces the attempts of something that is retried, and logs twice per outage: the first failure, and the recovery. */
export class Outage {
  readonly #pauses: { readonly firstMs: number; readonly longestMs: number };
  readonly #clock: Clock;
  readonly #random: () => number;
  #sinceMs = 0;
  #retryAtMs = -Infinity;
  /** Failures in a row; 0 when there is no outage. */
  failures = 0;
  /** Why the last attempt failed; `undefined` when there is no outage. */
  lastError: string | undefined;

  /** @param pauses - bounds of the exponential back-off, in ms */
  constructor(
    pauses: { readonly firstMs: number; readonly longestMs: number },
    clock: Clock = systemClock,
    random: () => number = Math.random,
  ) {
    this.#pauses = pauses;
    this.#clock = clock;
    this.#random = random;
  }

  /**
   * Notes a failed attempt.
   *
   * @param log - called for the first failure of an outage
   * @param longestMs - upper bound of this pause
   * @returns the pause before the next attempt, in ms
   */
  fail(detail: string, log: (fields: { readonly detail: string }) => void, longestMs = this.#pauses.longestMs): number {
    const nowMs = this.#clock();
    const exponentialMs = Math.min(longestMs, this.#pauses.firstMs * 2 ** this.failures++);
    // Shortened by up to a half, so that processes do not retry in step.
    const pauseMs = exponentialMs * (1 - this.#random() / 2);
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

  /** The rest of the pause after the last failure, in ms. One that seems longer than possible is over: the clock has stepped back. */
  get waitMs(): number {
    const waitMs = this.#retryAtMs - this.#clock();
    return waitMs > 0 && waitMs <= this.#pauses.longestMs ? waitMs : 0;
  }
}

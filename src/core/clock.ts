/** Milliseconds since the epoch. Injected everywhere, so that tests move time instead of waiting for it. */
export type Clock = () => number;

/** Handle of a pending timer. */
export interface Timer {
  cancel(): void;
}

/** Calls `task` once after `delayMs`. Injected together with the clock; the default never keeps the process alive. */
export type Schedule = (task: () => void, delayMs: number) => Timer;

/** Wall clock of the process. */
export const systemClock: Clock = () => Date.now();

/** A day, in ms: the default of how long tokens may live. */
export const DAY_MS = 86_400_000;

/** The longest delay of `setTimeout`; it fires immediately when asked for more. */
export const MAX_DELAY_MS = 2 ** 31 - 1;

/** `setTimeout` that is `unref()`ed: timers must not keep the process alive. A longer delay becomes 24.8 days. */
export const systemSchedule: Schedule = (task, delayMs) => {
  const timeout = setTimeout(task, Math.min(delayMs, MAX_DELAY_MS));
  timeout.unref();
  return { cancel: () => clearTimeout(timeout) };
};

/**
 * Waits for `work` at most `limitMs`. Does not cancel `work`; a later rejection is ignored.
 *
 * @param timeoutError - makes the error for `work` that takes longer
 */
export function withTimeLimit<Value>(
  work: Promise<Value>,
  limitMs: number,
  schedule: Schedule,
  timeoutError: (limitMs: number) => Error,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = schedule(() => reject(timeoutError(limitMs)), limitMs);
    work.then(resolve, reject).finally(() => timer.cancel());
  });
}

/** Bounds of an exponential back-off, in ms. */
export interface BackOffBounds {
  readonly firstMs: number;
  readonly longestMs: number;
}

/**
 * Pause in ms before the next attempt after `failures` in a row (1 or more): doubled each time up to the longest, then
 * cut by up to a half at random, so that a fleet does not come back in step.
 */
export function backOffMs(failures: number, { firstMs, longestMs }: BackOffBounds, random: () => number): number {
  const exponentialMs = Math.min(longestMs, firstMs * 2 ** (failures - 1));
  return exponentialMs * (1 - random() / 2);
}

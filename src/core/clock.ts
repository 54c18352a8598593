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
  return withProgressLimit(() => work, { limitMs, schedule, timeoutError });
}

/** How long work may take without progress. */
export interface ProgressLimit {
  readonly limitMs: number;
  readonly schedule: Schedule;
  /** Makes the error for work that takes longer. */
  readonly timeoutError: (limitMs: number) => Error;
}

/** Waits for work as long as it calls `progress` at least every `limitMs`. Does not cancel it; a later rejection is ignored. */
export function withProgressLimit<Value>(
  work: (progress: () => void) => Promise<Value>,
  { limitMs, schedule, timeoutError }: ProgressLimit,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    let settled = false;
    let timer = start();
    function start(): Timer {
      return schedule(() => reject(timeoutError(limitMs)), limitMs);
    }
    function progress(): void {
      timer.cancel();
      if (!settled) timer = start();
    }
    work(progress)
      .then(resolve, reject)
      .finally(() => {
        settled = true;
        timer.cancel();
      });
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

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

/** The longest delay of `setTimeout`; it fires immediately when asked for more. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** `setTimeout` that is `unref()`ed: timers must not keep the process alive. A longer delay becomes 24.8 days. */
export const systemSchedule: Schedule = (task, delayMs) => {
  const timeout = setTimeout(task, Math.min(delayMs, MAX_DELAY_MS));
  timeout.unref();
  return { cancel: () => clearTimeout(timeout) };
};

/** Milliseconds since the epoch. Injected everywhere, so that tests move time instead of waiting for it. */
export type Clock = () => number;

/** Handle of a pending timer. */
export interface Timer {
  cancel(): void;
}

/** Calls `task` once after `delayMs`. Injected beside the clock; the default never keeps the process alive. */
export type Schedule = (task: () => void, delayMs: number) => Timer;

/** Wall clock of the process. */
export const systemClock: Clock = () => Date.now();

/** `setTimeout` that is `unref()`ed: a gate in the background must not hold a process open. */
export const systemSchedule: Schedule = (task, delayMs) => {
  const timeout = setTimeout(task, delayMs);
  timeout.unref();
  return { cancel: () => clearTimeout(timeout) };
};

import * as timers from 'node:timers';
import { callUnwaited } from './callbacks';

/** The real timers: an app that fakes timers in its tests still gets decisions. */
const { setTimeout, clearTimeout } = timers;

/** Milliseconds since the epoch. Injected everywhere, so that tests move time instead of waiting for it. */
export type Clock = () => number;

/** Handle of a pending timer. */
export interface Timer {
  /** The task is not called any more; without an effect once it has been called. */
  cancel(): void;
}

/**
 * Calls `task` once after `delayMs`, in ms; a task that throws or rejects does not end the process. Injected together with the
 * clock; the default never keeps the process alive.
 *
 * @example
 * ```ts
 * import type { Schedule } from 'tillgate/generations';
 *
 * const schedule: Schedule = (task, delayMs) => {
 *   const timeout = setTimeout(task, delayMs).unref();
 *   return { cancel: () => clearTimeout(timeout) };
 * };
 * ```
 */
export type Schedule = (task: () => unknown, delayMs: number) => Timer;

/** Wall clock of the process. */
export const systemClock: Clock = () => Date.now();

/** What a text about times adds: of times in ms that were read as seconds, and in a test that has faked Date, by whichever library. */
export function timeHint(seconds = 0): string {
  if (seconds > 1e11) return ': times are in seconds (RFC 7519 section 2), not in ms';
  return Function.prototype.toString.call(Date.now).includes('[native code]') ? '' : FAKED_DATE;
}

const FAKED_DATE = ': the test has faked Date; give the gate the clock of its tokens, such as clock: issuer.clock.now';

/** The longest delay of `setTimeout`; it fires immediately when asked for more. */
export const MAX_DELAY_MS = 2 ** 31 - 1;

/** `setTimeout` that is `unref()`ed: timers must not keep the process alive. A longer delay becomes 24.8 days. */
export const systemSchedule: Schedule = (task, delayMs) => {
  const timeout = setTimeout(task, Math.min(delayMs, MAX_DELAY_MS));
  timeout.unref();
  return { cancel: () => clearTimeout(timeout) };
};

/** The schedules that are guarded already. */
const guardedSchedules = new WeakSet<Schedule>();

/** The same schedule for tasks that may throw: nothing catches what is thrown in a timer. */
export function guardSchedule(schedule: Schedule, failed: (error: unknown) => void): Schedule {
  if (guardedSchedules.has(schedule)) return schedule;
  const made: Schedule = (task, delayMs) => {
    let timer: Timer | undefined;
    callUnwaited(() => void (timer = schedule(() => callUnwaited(task, failed), delayMs)), failed);
    return { cancel: () => callUnwaited(() => timer?.cancel(), failed) };
  };
  guardedSchedules.add(made);
  return made;
}

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

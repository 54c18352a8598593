import { systemSchedule } from '../core/clock';
import type { Clock, Schedule } from '../core/clock';
import { describe } from '../core/options';

/** The time of a test issuer and of the gates that were given its `options`. */
export interface TestClock {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /**
   * Moves on by `ms` milliseconds; a clock that runs goes on running. Whatever the gates have put off until then, such as
   * the next fetch of a key set or the end of a wait, begins at once.
   *
   * @throws TypeError when `ms` is no number from 0 on
   */
  advance(ms: number): void;
  /**
   * Stops the clock at a time, in ms since the epoch. It may lie in the past.
   *
   * @throws TypeError when `ms` is no number
   */
  set(ms: number): void;
}

interface Task {
  readonly dueMs: number;
  run(): void;
}

/** Makes a clock that runs like `base` until it is moved, and timers that its moves bring forward. */
export function testClock(base: Clock): { readonly clock: TestClock; readonly schedule: Schedule } {
  const pending = new Set<Task>();
  let offsetMs = 0;
  let stoppedMs: number | undefined;

  function now(): number {
    return (stoppedMs ?? base()) + offsetMs;
  }

  function runDue(): void {
    const due = [...pending].filter(({ dueMs }) => dueMs <= now());
    for (const task of due.sort((a, b) => a.dueMs - b.dueMs)) task.run();
  }

  const clock: TestClock = {
    now,
    advance(ms) {
      if (!Number.isFinite(ms) || ms < 0) {
        throw new TypeError(`clock.advance(): expected milliseconds from 0 on, got ${describe(ms)}; set() goes back`);
      }
      offsetMs += ms;
      runDue();
    },
    set(ms) {
      if (!Number.isFinite(ms)) {
        throw new TypeError(`clock.set(): expected milliseconds since the epoch, got ${describe(ms)}`);
      }
      stoppedMs = ms;
      offsetMs = 0;
      runDue();
    },
  };

  /** Real time goes by as well: whichever comes first. */
  function schedule(task: () => void, delayMs: number): { cancel(): void } {
    const timer = systemSchedule(run, delayMs);
    const entry: Task = { dueMs: now() + delayMs, run };
    function run(): void {
      if (cancel()) task();
    }
    function cancel(): boolean {
      timer.cancel();
      return pending.delete(entry);
    }
    pending.add(entry);
    return { cancel };
  }

  return { clock, schedule };
}

import { setImmediate as turn } from 'node:timers/promises';
import { systemSchedule } from '../../core/clock';
import type { Clock, Schedule } from '../../core/clock';
import { describe } from '../../core/options';

/** The time of a test issuer and of the gates that were given its `options`. */
export interface TestClock {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /**
   * Moves forward by `ms` milliseconds; a running clock keeps running. Timers of the gates that are due by then, such as
   * the next fetch of a key set or the end of a wait, fire in order, each one after what is under way has settled.
   *
   * @throws TypeError when `ms` is not a number of at least 0
   */
  advance(ms: number): void;
  /**
   * Stops the clock at a time in ms since the epoch, which may be in the past.
   *
   * @throws TypeError when `ms` is not a number
   */
  set(ms: number): void;
}

/** Makes a clock that runs like `base` until it is moved, and a schedule whose timers follow it. */
export function testClock(base: Clock): { readonly clock: TestClock; readonly schedule: Schedule } {
  /** Timers with the time at which each is due, in ms. */
  const pending = new Map<() => void, number>();
  let offsetMs = 0;
  let stoppedMs: number | undefined;

  function now(): number {
    return (stoppedMs ?? base()) + offsetMs;
  }

  /** What is under way may cancel a timer: a read that returns has no time limit any more. */
  async function runDue(): Promise<void> {
    const due = [...pending].filter(([, dueMs]) => dueMs <= now()).sort(([, a], [, b]) => a - b);
    for (const [run] of due) {
      await turn();
      run();
    }
  }

  const clock: TestClock = {
    now,
    advance(ms) {
      if (!Number.isFinite(ms) || ms < 0) {
        throw new TypeError(`clock.advance(): expected milliseconds from 0 on, got ${describe(ms)}; set() goes back`);
      }
      offsetMs += ms;
      void runDue();
    },
    set(ms) {
      if (!Number.isFinite(ms)) {
        throw new TypeError(`clock.set(): expected milliseconds since the epoch, got ${describe(ms)}`);
      }
      stoppedMs = ms;
      offsetMs = 0;
      void runDue();
    },
  };

  /** Fires after the real delay, or earlier when the clock is moved past it. */
  function schedule(task: () => void, delayMs: number): { cancel(): void } {
    const timer = systemSchedule(run, delayMs);
    function cancel(): boolean {
      timer.cancel();
      return pending.delete(run);
    }
    function run(): void {
      if (cancel()) task();
    }
    pending.set(run, now() + delayMs);
    return { cancel };
  }

  return { clock, schedule };
}

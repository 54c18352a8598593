import { describe } from '../core/options';
import type { Clock } from '../core/clock';

/** The time of a test issuer and of the gates that were given its `options`. */
export interface TestClock {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /**
   * Moves on by `ms` milliseconds; a clock that runs goes on running.
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

/** Makes a clock that runs like `base` until it is moved. */
export function testClock(base: Clock): TestClock {
  let offsetMs = 0;
  let stoppedMs: number | undefined;

  return {
    now: () => (stoppedMs ?? base()) + offsetMs,
    advance(ms) {
      if (!Number.isFinite(ms) || ms < 0) {
        throw new TypeError(`clock.advance(): expected milliseconds from 0 on, got ${describe(ms)}; set() goes back`);
      }
      offsetMs += ms;
    },
    set(ms) {
      if (!Number.isFinite(ms)) {
        throw new TypeError(`clock.set(): expected milliseconds since the epoch, got ${describe(ms)}`);
      }
      stoppedMs = ms;
      offsetMs = 0;
    },
  };
}

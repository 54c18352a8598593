import type { Clock, Schedule } from '../../src/gate/core/clock';

/** Time that moves only when a test says so. */
export interface FakeTime {
  readonly clock: Clock;
  readonly schedule: Schedule;
  /** Advances by `ms`: due timers run in order, and the promises of each settle before the next one runs. */
  advance(ms: number): Promise<void>;
  /** Steps the wall clock only, as NTP or an operator does; timers are not affected. Negative: back. */
  step(ms: number): void;
  /** Number of pending timers. */
  readonly pending: number;
}

interface Waiting {
  readonly dueMs: number;
  readonly task: () => void;
}

/** Stops a timer of 0 ms that sets itself again and again. */
const MOST_TIMERS = 20_000;

/** Starts a fake clock at `startMs` (default: some day in 2027), with a schedule that follows it. */
export function fakeTime(startMs = 1_800_000_000_000): FakeTime {
  let elapsedMs = 0;
  let offsetMs = startMs;
  const timers = new Set<Waiting>();

  const schedule: Schedule = (task, delayMs) => {
    const waiting = { dueMs: elapsedMs + Math.max(0, delayMs), task };
    timers.add(waiting);
    return { cancel: () => void timers.delete(waiting) };
  };

  async function advance(ms: number): Promise<void> {
    const untilMs = elapsedMs + ms;
    await settle();
    let left = MOST_TIMERS;
    for (let next = earliest(); next !== undefined && next.dueMs <= untilMs; next = earliest()) {
      if (left-- === 0) throw new Error(`more than ${MOST_TIMERS} timers fell due in ${ms} ms: they set each other`);
      timers.delete(next);
      elapsedMs = Math.max(elapsedMs, next.dueMs);
      next.task();
      await settle();
    }
    elapsedMs = untilMs;
  }

  function earliest(): Waiting | undefined {
    let first: Waiting | undefined;
    for (const timer of timers) if (first === undefined || timer.dueMs < first.dueMs) first = timer;
    return first;
  }

  return {
    clock: () => offsetMs + elapsedMs,
    schedule,
    advance,
    step: (ms) => void (offsetMs += ms),
    get pending() {
      return timers.size;
    },
  };
}

/** Waits until pending promise callbacks have run, and those that take a few turns of the event loop. */
export async function settle(turns = 3): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
}

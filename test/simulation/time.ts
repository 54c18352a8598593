import type { Clock, Schedule } from '../../src/gate/core/clock';

interface Waiting {
  readonly dueMs: number;
  readonly order: number;
  readonly task: () => unknown;
  isCancelled: boolean;
}

/** The wall clock of every machine that is right, at the beginning of a world. */
export const START = 1_800_000_000_000;

/** Turns of the event loop that a timer is given at most: a follower takes one between two reads, and may read without a pause. */
const MAX_TURNS = 2;

/** Time that moves from timer to timer. */
export class VirtualTime {
  /** Time since the beginning of the world, in ms. */
  nowMs = 0;
  /** Timers that ran. */
  events = 0;
  /** A binary heap. */
  readonly #heap: Waiting[] = [];
  #order = 0;
  #isTurnExpected = false;

  readonly schedule: Schedule = (task, delayMs) => {
    const waiting = { dueMs: this.nowMs + Math.max(0, delayMs), order: this.#order++, task, isCancelled: false };
    this.#push(waiting);
    return { cancel: () => void (waiting.isCancelled = true) };
  };

  /** Says that a follower may take a turn of the event loop now. Most timers need none, and it costs more than what they do. */
  expectTurn(): void {
    this.#isTurnExpected = true;
  }

  /** Resolves after a time. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.schedule(resolve, ms));
  }

  /** Runs what is due until then, in order; the promises of each timer settle before the next one runs. */
  async advanceTo(untilMs: number): Promise<void> {
    await this.#settle();
    for (let next = this.#heap[0]; next !== undefined && next.dueMs <= untilMs; next = this.#heap[0]) {
      this.#pop();
      if (next.isCancelled) continue;
      this.nowMs = Math.max(this.nowMs, next.dueMs);
      this.events++;
      next.task();
      await this.#settle();
    }
    this.nowMs = untilMs;
  }

  /** Waits until every promise has called back, and after the turns that are expected again. */
  async #settle(): Promise<void> {
    await microtasks();
    for (let turn = 0; turn < MAX_TURNS && this.#isTurnExpected; turn++) {
      this.#isTurnExpected = false;
      await new Promise((resolve) => setImmediate(resolve));
      await microtasks();
    }
  }

  #push(waiting: Waiting): void {
    const heap = this.#heap;
    let at = heap.push(waiting) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(waiting, heap[parent] as Waiting)) break;
      heap[at] = heap[parent] as Waiting;
      at = parent;
    }
    heap[at] = waiting;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop() as Waiting;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Waiting, heap[child] as Waiting)) child++;
      if (!isBefore(heap[child] as Waiting, last)) break;
      heap[at] = heap[child] as Waiting;
      at = child;
    }
    heap[at] = last;
  }
}

function isBefore(one: Waiting, other: Waiting): boolean {
  return one.dueMs < other.dueMs || (one.dueMs === other.dueMs && one.order < other.order);
}

/** Resolves when no microtask is left: Node runs ticks after them. */
function microtasks(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}

/** A machine: its clock, which can be wrong, and its timers, which do not run while it is suspended or dead. */
export class Machine {
  readonly #time: VirtualTime;
  #offsetMs = 0;
  /** What the clock gains, per ms. */
  #drift = 0;
  #driftsSinceMs = 0;
  #suspendedUntilMs = 0;
  isDead = false;
  /** Since when its clock is right. */
  rightSinceMs = -Infinity;
  /** Since when it has been slow by the same time. */
  slowSinceMs = Infinity;
  /** When the clock was set, and by how much it was wrong before and after. */
  readonly #errors: { readonly atMs: number; readonly stepMs: number; readonly offsetMs: number }[] = [];

  constructor(time: VirtualTime) {
    this.#time = time;
  }

  readonly clock: Clock = () => START + Math.floor(this.#time.nowMs + this.offsetMs);

  readonly schedule: Schedule = (task, delayMs) => {
    const run = (): void => {
      if (this.isDead) return;
      const leftMs = this.#suspendedUntilMs - this.#time.nowMs;
      if (leftMs > 0) timer = this.#time.schedule(run, Math.min(leftMs, 500));
      else {
        task();
        this.#time.expectTurn();
      }
    };
    let timer = this.#time.schedule(run, delayMs);
    return { cancel: () => timer.cancel() };
  };

  /** By how much the clock is ahead. */
  get offsetMs(): number {
    return this.#offsetMs + this.#drift * (this.#time.nowMs - this.#driftsSinceMs);
  }

  get isSuspended(): boolean {
    return this.#suspendedUntilMs > this.#time.nowMs;
  }

  set(offsetMs: number, drift = 0): void {
    this.#note(offsetMs);
    this.slowSinceMs = offsetMs < -60_000 && drift === 0 ? this.#time.nowMs : Infinity;
    this.rightSinceMs = offsetMs === 0 && drift === 0 ? this.#time.nowMs : Infinity;
    [this.#offsetMs, this.#drift, this.#driftsSinceMs] = [offsetMs, drift, this.#time.nowMs];
  }

  suspend(ms: number): void {
    this.#suspendedUntilMs = this.#time.nowMs + ms;
  }

  /** How wrong the clock was from then until now, in ms: the largest error, and every step. */
  errorSince(fromMs: number): number {
    let largest = Math.abs(this.offsetMs);
    let steps = 0;
    for (const { atMs, stepMs, offsetMs } of this.#errors) {
      if (atMs < fromMs) continue;
      largest = Math.max(largest, Math.abs(offsetMs));
      steps += stepMs;
    }
    return largest + steps;
  }

  #note(offsetMs: number): void {
    const before = this.offsetMs;
    this.#errors.push({ atMs: this.#time.nowMs, stepMs: Math.abs(offsetMs - before), offsetMs: before });
  }
}

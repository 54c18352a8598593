import { option } from '../core/options';
import { SUBJECT_PREFIX, subjectOf } from '../core/subject-caller';
import { FIRST_TIME_MS, isInFuture } from './generation';

/** How far apart the clocks of an issuer's machines may be: by so much a token can outlive its floor. */
const ISSUER_CLOCK_SKEW_MS = 60_000;

/** The row of `maxTokenAgeSeconds`. */
export const TOKEN_AGE_OPTION = option.number({ unit: 'seconds', min: 1, max: 366 * 86_400, integer: true }, 86_400);

/** How long a log keeps changes, in ms: an hour longer than tokens live, because clocks of publishers, issuers and readers may differ. */
export function keptMsOf(maxTokenAgeSeconds: number): number {
  return maxTokenAgeSeconds * 1000 + 3_600_000;
}

/** How far ahead a floor of the future is waited for, in ms: one that lies further ahead is a wrong entry. */
export const MAX_AHEAD_MS = 3_600_000;

/** The error of a source whose changes have times that have not come. */
export const SLOW = 'the log has changes of the future: this clock is slow, or that of the publisher is ahead';

/** Longest step of `steadyTime()` by default, in ms: longer than any pause between two calls while there is work to do. */
const LONGEST_STEP_MS = 3_600_000;

/**
 * Turns the time of a clock into one that never goes back, and advances by a step at most between two calls, an hour by default: a clock
 * that leaps ahead by days makes nothing old.
 */
export function steadyTime(longestStepMs = LONGEST_STEP_MS): (nowMs: number) => number {
  let lastMs: number | undefined;
  let steadyMs = 0;
  return (nowMs) => {
    steadyMs += Math.min(longestStepMs, Math.max(0, nowMs - (lastMs ?? nowMs)));
    lastMs = nowMs;
    return steadyMs;
  };
}

/**
 * The lowest generation still accepted per client id, for one issuer. Floors merge by max, so order, repetition and
 * duplicates never matter. A floor is kept for between one and two lifetimes: by then the last token that it discards
 * has expired.
 *
 * Meant for up to 200,000 changed clients: a map takes some 100 bytes for each.
 */
export class Floors {
  /** How long a floor is needed, in ms. */
  readonly lifetimeMs: number;
  /** By client id. Two maps take turns, so that nothing has to be searched for what has expired. */
  #current = new Map<string, number>();
  #previous: ReadonlyMap<string, number> | undefined;
  readonly #steady: ReturnType<typeof steadyTime>;
  readonly #skewMs: number;
  #turnedMs = 0;
  /**
   * Floors whose time has not come, by client; an hour ahead at most when they were read, so that wrong entries do not
   * pile up. All of them: one that lies further ahead must not hide another one.
   */
  readonly pending = new Map<string, Set<number>>();
  /** The earliest generation that the log has and whose time has not come. */
  earliest = Infinity;
  /** The earliest one that is more than an hour ahead: it is not kept. */
  #earliestWrong = Infinity;
  /** Called with the client whose floor has risen. */
  onRaise: ((clientId: string) => void) | undefined;
  /** Whether any floor was a counter: a number that is not a time in ms. */
  hasCounter = false;
  /** Called with the first counter. */
  onCounter: (() => void) | undefined;

  /**
   * @param limits - `maxTokenAgeMs`: longest `exp - iat` that verification accepts; `skewMs`: how long after its `exp` a
   * token is still accepted
   */
  constructor({ maxTokenAgeMs, skewMs }: { readonly maxTokenAgeMs: number; readonly skewMs: number }) {
    this.lifetimeMs = maxTokenAgeMs + skewMs + ISSUER_CLOCK_SKEW_MS;
    this.#skewMs = skewMs;
    // Tokens may live for minutes only: one leap of the clock must not make their floors old.
    this.#steady = steadyTime(Math.min(LONGEST_STEP_MS, this.lifetimeMs / 8));
  }

  /** Floors in memory; one that has risen since the last turn may count twice. */
  get size(): number {
    return this.#current.size + (this.#previous?.size ?? 0);
  }

  /** The floor of a caller. That of its subject counts too where it is named by that: triggers and publishers write the raw id. */
  get(clientId: string): number | undefined {
    const floor = Math.max(this.#current.get(clientId) ?? -1, this.#previous?.get(clientId) ?? -1);
    if (!clientId.startsWith(SUBJECT_PREFIX)) return floor < 0 ? undefined : floor;
    const subject = clientId.slice(SUBJECT_PREFIX.length);
    const highest = Math.max(floor, this.#current.get(subject) ?? -1, this.#previous?.get(subject) ?? -1);
    return highest < 0 ? undefined : highest;
  }

  /** Raises the floor of one client; `false` where it is as high already. */
  raise(clientId: string, generation: number): boolean {
    if (generation < FIRST_TIME_MS && !this.hasCounter) {
      this.hasCounter = true;
      this.onCounter?.();
    }
    if (generation <= (this.get(clientId) ?? -1)) return false;
    this.#current.set(clientId, generation);
    this.onRaise?.(clientId);
    return true;
  }

  /** Keeps a floor whose time has not come, an hour ahead at most. */
  keep(clientId: string, generation: number, nowMs: number): void {
    this.earliest = Math.min(generation, this.earliest);
    if (generation > nowMs + MAX_AHEAD_MS) this.#earliestWrong = Math.min(generation, this.#earliestWrong);
    else this.pending.set(clientId, (this.pending.get(clientId) ?? new Set()).add(generation));
  }

  /** Whether the log must be read again: the time of the earliest one has come, or one that was not kept comes within an hour. */
  isEarliestDue(nowMs: number): boolean {
    return !isInFuture(this.earliest, nowMs, this.#skewMs) || this.#earliestWrong <= nowMs + MAX_AHEAD_MS;
  }

  /** Raises each floor whose time has come, before the log is read again from its start. */
  raiseAllDue(nowMs: number): void {
    for (const clientId of [...this.pending.keys()]) this.raiseDue(clientId, nowMs);
    this.earliest = Infinity;
    this.#earliestWrong = Infinity;
  }

  /** Raises the floors of a caller whose time has come. */
  raiseDue(clientId: string, nowMs: number): void {
    const subject = subjectOf(clientId);
    if (subject !== undefined) this.raiseDue(subject, nowMs);
    const floors = this.pending.get(clientId) ?? new Set();
    for (const floor of floors) {
      if (isInFuture(floor, nowMs, this.#skewMs)) continue;
      floors.delete(floor);
      this.raise(clientId, floor);
    }
    if (floors.size === 0) this.pending.delete(clientId);
  }

  /** Whether a generation is below a floor whose time comes within an hour. */
  isBelowPending(clientId: string, generation: number, nowMs: number): boolean {
    const ids = [clientId, subjectOf(clientId) ?? clientId];
    const floors = ids.flatMap((id) => [...(this.pending.get(id) ?? [])]);
    return floors.some((floor) => generation < floor && floor <= nowMs + MAX_AHEAD_MS);
  }

  /** Forgets floors that are older than a lifetime; to be called now and then. */
  turn(nowMs: number): void {
    const steadyMs = this.#steady(nowMs);
    if (steadyMs - this.#turnedMs < this.lifetimeMs) return;
    this.#turnedMs = steadyMs;
    this.#previous = this.#current;
    this.#current = new Map();
  }
}

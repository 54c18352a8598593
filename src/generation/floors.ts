import { FIRST_TIME_MS, isFloor } from './generation';

/** How long a floor can still matter. */
export interface FloorsOptions {
  /** Longest `exp - iat` that verification accepts, in ms. */
  readonly maxTokenAgeMs: number;
  /** How long after its `exp` a token is still accepted, in ms. */
  readonly skewMs: number;
}

/**
 * How far apart the clocks of the machines may be that issue tokens and change clients: a token can carry a later `iat`
 * than the floor that discards it, and then outlives the floor by as much.
 */
const CLOCKS_APART_MS = 60_000;

/** What one merge met. */
export interface Merged {
  /** Entries that are not floors; they changed nothing. */
  readonly refused: number;
  /** Whether a generation below 10^12 was among them: a counter, not a time. */
  readonly counters: boolean;
}

/** A trim is a pass over all floors, so it is not made more often than this. */
const TRIM_EVERY_MS = 60_000;

/**
 * The lowest generation still accepted per client id, for one issuer. Floors merge by max, so order, repetition and
 * duplicates never matter.
 */
export class Floors {
  readonly #lowest = new Map<string, number>();
  readonly #lifetimeMs: number;
  #trimmedMs = 0;

  constructor({ maxTokenAgeMs, skewMs }: FloorsOptions) {
    this.#lifetimeMs = maxTokenAgeMs + skewMs + CLOCKS_APART_MS;
  }

  get size(): number {
    return this.#lowest.size;
  }

  get(clientId: string): number | undefined {
    return this.#lowest.get(clientId);
  }

  /** Raises one floor; returns whether it moved. */
  raise(clientId: string, generation: number): boolean {
    const known = this.#lowest.get(clientId);
    if (known !== undefined && generation <= known) return false;
    this.#lowest.set(clientId, generation);
    return true;
  }

  /** Raises many; entries that are not floors are left out and counted. */
  merge(floors: Iterable<unknown>): Merged {
    let refused = 0;
    let counters = false;
    for (const floor of floors) {
      if (!isFloor(floor)) {
        refused++;
        continue;
      }
      this.raise(floor[0], floor[1]);
      if (floor[1] < FIRST_TIME_MS) counters = true;
    }
    return { refused, counters };
  }

  /**
   * Drops every floor whose older tokens have all expired, and returns how many. Safe because verification refuses
   * tokens that live longer than `maxTokenAgeMs`. Counters say nothing about time: they stay.
   */
  trim(nowMs: number): number {
    let dropped = 0;
    for (const [clientId, floor] of this.#lowest) {
      if (floor < FIRST_TIME_MS || floor + this.#lifetimeMs >= nowMs) continue;
      this.#lowest.delete(clientId);
      dropped++;
    }
    return dropped;
  }

  /** Trims once a minute at most, so that it can be called after every read and every learned floor. */
  trimWhenDue(nowMs: number): void {
    if (Math.abs(nowMs - this.#trimmedMs) < TRIM_EVERY_MS) return;
    this.#trimmedMs = nowMs;
    this.trim(nowMs);
  }
}

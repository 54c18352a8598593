import { FloorTable, PARTS } from './floor-table';
import { FIRST_TIME_MS } from './generation';
import type { Floor } from './source';

/** How long a floor can still matter. */
export interface FloorsOptions {
  /** Longest `exp - iat` that verification accepts, in ms. */
  readonly maxTokenAgeMs: number;
  /** How long after its `exp` a token is still accepted, in ms. */
  readonly skewMs: number;
}

/**
 * How far apart the clocks of an issuer's machines may be: a token can carry a later `iat` than the floor that discards
 * it, and then outlives the floor by that much.
 */
const ISSUER_CLOCK_SKEW_MS = 60_000;

/**
 * How much longer than the longest token age a store and a relay keep floors, in ms: clocks of publishers, issuers and
 * readers may differ.
 */
export const KEPT_LONGER_MS = 3_600_000;

/** A trim is a pass over all floors. */
const MIN_TRIM_INTERVAL_MS = 60_000;
const FLOORS_PER_TRIM = 100_000;

/**
 * The lowest generation still accepted per client id, for one issuer. Floors merge by max, so order, repetition and
 * duplicates never matter.
 */
export class Floors extends FloorTable {
  /** How long a floor is needed, in ms: older ones discard no token that could still be accepted. */
  readonly lifetimeMs: number;
  #trimmedMs = 0;
  /** Where the current trim goes on; `PARTS` when none is under way. */
  #nextPart = PARTS;

  constructor({ maxTokenAgeMs, skewMs }: FloorsOptions) {
    super();
    this.lifetimeMs = maxTokenAgeMs + skewMs + ISSUER_CLOCK_SKEW_MS;
  }

  /**
   * Drops every floor whose older tokens have all expired, and returns how many. Safe because verification refuses
   * tokens that live longer than `maxTokenAgeMs`. Generations that are not times never expire.
   */
  trim(nowMs: number): number {
    const { size } = this;
    for (let part = 0; part < PARTS; part++) this.#trimPart(part, nowMs);
    return size - this.size;
  }

  /**
   * Trims at most once a minute, so it can be called after every read. Looks at some 100,000 floors per call, a few ms of
   * work; the next calls go on from there.
   */
  trimWhenDue(nowMs: number): void {
    if (this.#nextPart === PARTS) {
      if (Math.abs(nowMs - this.#trimmedMs) < MIN_TRIM_INTERVAL_MS) return;
      this.#trimmedMs = nowMs;
      this.#nextPart = 0;
    }
    for (let seen = 0; this.#nextPart < PARTS && seen < FLOORS_PER_TRIM; this.#nextPart++) {
      seen += this.sizeOf(this.#nextPart);
      this.#trimPart(this.#nextPart, nowMs);
    }
  }

  #trimPart(part: number, nowMs: number): void {
    this.drop(part, (floor) => floor >= FIRST_TIME_MS && floor + this.lifetimeMs < nowMs);
  }
}

/** Floors in two arrays: a pair exists only while it is iterated, which saves a million small arrays per large read. */
export class FloorList implements Iterable<Floor> {
  readonly clientIds: string[] = [];
  readonly generations: number[] = [];

  get length(): number {
    return this.clientIds.length;
  }

  add(clientId: string, generation: number): void {
    this.clientIds.push(clientId);
    this.generations.push(generation);
  }

  *[Symbol.iterator](): Generator<Floor, void, undefined> {
    for (const [index, clientId] of this.clientIds.entries()) yield [clientId, this.generations[index] as number];
  }
}

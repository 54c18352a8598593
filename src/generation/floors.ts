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

/** A trim is a pass over all floors. */
const MIN_TRIM_INTERVAL_MS = 60_000;

/**
 * The lowest generation still accepted per client id, for one issuer. Floors merge by max, so order, repetition and
 * duplicates never matter.
 */
export class Floors {
  readonly #lowest = new Map<string, number>();
  readonly #lifetimeMs: number;
  #trimmedMs = 0;

  constructor({ maxTokenAgeMs, skewMs }: FloorsOptions) {
    this.#lifetimeMs = maxTokenAgeMs + skewMs + ISSUER_CLOCK_SKEW_MS;
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

  /**
   * Drops every floor whose older tokens have all expired, and returns how many. Safe because verification refuses
   * tokens that live longer than `maxTokenAgeMs`. Generations that are not times never expire.
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

  /** Trims at most once a minute, so it can be called after every read. */
  trimWhenDue(nowMs: number): void {
    if (Math.abs(nowMs - this.#trimmedMs) < MIN_TRIM_INTERVAL_MS) return;
    this.#trimmedMs = nowMs;
    this.trim(nowMs);
  }
}

/** Floors in two arrays: a pair exists only while it is iterated, which saves a million small arrays per large read. */
export class FloorList implements Iterable<Floor> {
  readonly #clientIds: string[] = [];
  readonly #generations: number[] = [];

  get length(): number {
    return this.#clientIds.length;
  }

  add(clientId: string, generation: number): void {
    this.#clientIds.push(clientId);
    this.#generations.push(generation);
  }

  *[Symbol.iterator](): Generator<Floor, void, undefined> {
    for (const [index, clientId] of this.#clientIds.entries()) yield [clientId, this.#generations[index] as number];
  }
}

import { randomInt } from 'node:crypto';
import { option } from '../core/options';

/** How far apart the clocks of an issuer's machines may be: by so much a token can outlive its floor. */
const ISSUER_CLOCK_SKEW_MS = 60_000;

/** The row of `maxTokenAgeSeconds`. */
export const TOKEN_AGE_OPTION = option.number({ unit: 'seconds', min: 1, integer: true }, 86_400);

/** How long a log keeps changes, in ms: an hour longer than tokens live, because clocks of publishers, issuers and readers may differ. */
export function keptMsOf(maxTokenAgeSeconds: number): number {
  return maxTokenAgeSeconds * 1000 + 3_600_000;
}

/**
 * The lowest generation still accepted per client id, for one issuer. Floors merge by max, so order, repetition and
 * duplicates never matter. A floor is kept for between one and two lifetimes: by then the last token that it discards
 * has expired.
 */
export class Floors {
  /** How long a floor is needed, in ms. */
  readonly lifetimeMs: number;
  /** Two tables take turns, so that nothing has to be searched for what has expired. */
  #current = new FloorTable();
  #previous: FloorTable | undefined;
  #turnedMs: number | undefined;
  /** Called with the client whose floor has risen. */
  onRaise: ((clientId: string) => void) | undefined;

  /**
   * @param limits - `maxTokenAgeMs`: longest `exp - iat` that verification accepts; `skewMs`: how long after its `exp` a
   * token is still accepted
   */
  constructor({ maxTokenAgeMs, skewMs }: { readonly maxTokenAgeMs: number; readonly skewMs: number }) {
    this.lifetimeMs = maxTokenAgeMs + skewMs + ISSUER_CLOCK_SKEW_MS;
  }

  /** Floors in memory; one that has risen since the last turn may count twice. */
  get size(): number {
    return this.#current.size + (this.#previous?.size ?? 0);
  }

  get(clientId: string): number | undefined {
    const current = this.#current.get(clientId) ?? -1;
    const previous = this.#previous?.get(clientId) ?? -1;
    const floor = Math.max(current, previous);
    return floor < 0 ? undefined : floor;
  }

  /** Raises the floor of one client. */
  raise(clientId: string, generation: number): void {
    if (generation <= (this.get(clientId) ?? -1)) return;
    this.#current.raise(clientId, generation);
    this.onRaise?.(clientId);
  }

  /**
   * Forgets floors that are older than a lifetime; to be called now and then. One call drops one table at most, so a clock
   * that leaps ahead drops nothing that was raised since the last turn.
   */
  turn(nowMs: number): void {
    // A clock that steps back keeps floors longer.
    this.#turnedMs = Math.min(this.#turnedMs ?? nowMs, nowMs);
    if (nowMs - this.#turnedMs < this.lifetimeMs) return;
    this.#turnedMs = nowMs;
    this.#previous = this.#current;
    this.#current = new FloorTable();
  }
}

/** Parts grow one by one, so no call does more than 1/256 of the work of growing. */
const PARTS = 256;

/** Unknown outside of this process, so that client ids cannot be chosen to collide. */
const SEED = randomInt(2 ** 32);
const MULTIPLIER = randomInt(2 ** 30, 2 ** 32) | 1;

/** A signed integer of 32 bits, which V8 does not box. */
function hashOf(clientId: string): number {
  let hash = SEED ^ clientId.length;
  for (let at = 0; at < clientId.length; at++) hash = Math.imul(hash ^ clientId.charCodeAt(at), MULTIPLIER);
  // The last steps of MurmurHash3: an unlucky multiplier alone would fill some parts three times as much as others.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}

/** Generations by client id, in typed arrays: a million take some 50 MB, and the garbage collector visits none. */
export class FloorTable {
  readonly #parts: (Part | undefined)[] = Array.from({ length: PARTS });

  get size(): number {
    return this.#parts.reduce((sum, part) => sum + (part?.size ?? 0), 0);
  }

  get(clientId: string): number | undefined {
    const hash = hashOf(clientId);
    return this.#parts[hash & (PARTS - 1)]?.get(clientId, hash);
  }

  /** Raises one floor; returns whether it moved. */
  raise(clientId: string, generation: number): boolean {
    const hash = hashOf(clientId);
    const part = (this.#parts[hash & (PARTS - 1)] ??= new Part(0.5 + (hash & (PARTS - 1)) / PARTS / 4));
    return part.raise(clientId, hash, generation);
  }
}

/** The first place, and so the length of the first segment, in bytes. */
const FIRST_BYTES = 128;
const FIRST_SLOTS = 8;
/** Of a record, in bytes: where the client id begins, behind the generation and the header. */
const ID_AT = 12;

/**
 * A hash table with open addressing. A slot is the hash and the place of a record; a record is the generation, a header and
 * the client id. Records are never moved: memory that is left behind when an array grows makes V8 collect garbage again
 * and again during a large read.
 */
class Part {
  #slots = new Int32Array(2 * FIRST_SLOTS);
  /** By the number of the highest bit of the places in them: each is as long as its first place says. */
  readonly #segments: (Buffer | undefined)[] = [];
  #nextPlace = FIRST_BYTES;
  readonly #fill: number;
  size = 0;

  /** @param fill - share of the slots, between 1/2 and 3/4: differs between parts, so that they do not grow at the same time */
  constructor(fill: number) {
    this.#fill = fill;
  }

  get(clientId: string, hash: number): number | undefined {
    const place = this.#slots[this.#find(hash, clientId) + 1] as number;
    if (place === 0) return undefined;
    const segment = this.#segmentOf(place);
    return segment.readDoubleLE(place - segment.length);
  }

  raise(clientId: string, hash: number, generation: number): boolean {
    const slot = this.#find(hash, clientId);
    const place = this.#slots[slot + 1] as number;
    if (place > 0) {
      const segment = this.#segmentOf(place);
      const isHigher = generation > segment.readDoubleLE(place - segment.length);
      if (isHigher) segment.writeDoubleLE(generation, place - segment.length);
      return isHigher;
    }
    this.#slots[slot] = hash;
    this.#slots[slot + 1] = this.#append(clientId, generation);
    this.size++;
    if (this.size > (this.#slots.length / 2) * this.#fill) this.#rehash();
    return true;
  }

  /** The slot of a client, or the empty one where it belongs; without a client the first empty one for the hash. */
  #find(hash: number, clientId?: string): number {
    const slots = this.#slots;
    const last = slots.length - 1;
    // The low bits have chosen the part.
    let slot = ((hash >>> 8) * 2) & last;
    for (let place = slots[slot + 1] as number; place > 0; place = slots[slot + 1] as number) {
      if (slots[slot] === hash && clientId !== undefined && this.#idAt(place) === clientId) break;
      slot = (slot + 2) & last;
    }
    return slot;
  }

  #rehash(): void {
    const slots = this.#slots;
    this.#slots = new Int32Array(slots.length * 2);
    for (let slot = 0; slot < slots.length; slot += 2) {
      if (slots[slot + 1] === 0) continue;
      const free = this.#find(slots[slot] as number);
      this.#slots.set(slots.subarray(slot, slot + 2), free);
    }
  }

  #segmentOf(place: number): Buffer {
    return this.#segments[31 - Math.clz32(place)] as Buffer;
  }

  #idAt(place: number): string {
    const segment = this.#segmentOf(place);
    const from = place - segment.length + ID_AT;
    const header = segment.readUInt32LE(from - 4);
    return segment.toString(header & 1 ? 'utf16le' : 'latin1', from, from + (header >>> 1));
  }

  /** Returns the place of the new record. */
  #append(clientId: string, generation: number): number {
    const isWide = /[^\0-\xff]/.test(clientId);
    const bytes = clientId.length * (isWide ? 2 : 1);
    const place = this.#reserve(ID_AT + bytes);
    const segment = this.#segmentOf(place);
    const at = segment.writeDoubleLE(generation, place - segment.length);
    segment.writeUInt32LE(bytes * 2 + Number(isWide), at);
    segment.write(clientId, at + 4, isWide ? 'utf16le' : 'latin1');
    return place;
  }

  /** Returns the place of as many bytes in one segment. Skips the rest of a segment that is too short for them. */
  #reserve(bytes: number): number {
    let place = this.#nextPlace;
    let highest = 31 - Math.clz32(place);
    for (; place + bytes > 2 << highest; highest++) place = 2 << highest;
    this.#segments[highest] ??= Buffer.alloc(1 << highest);
    this.#nextPlace = place + bytes;
    return place;
  }
}

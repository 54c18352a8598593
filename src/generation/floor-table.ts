import { randomInt } from 'node:crypto';

/** Parts grow one by one, so no call does more than 1/256 of the work of growing. */
export const PARTS = 256;

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

/**
 * Generations by client id, in typed arrays: a million floors take some 50 MB, and the garbage collector neither visits
 * nor copies them.
 */
export class FloorTable {
  readonly #parts: (Part | undefined)[] = Array.from({ length: PARTS });
  /** Ids that are too long for a part: rare. */
  readonly #long = new Map<string, number>();

  get size(): number {
    return this.#parts.reduce((sum, part) => sum + (part?.size ?? 0), this.#long.size);
  }

  get(clientId: string): number | undefined {
    if (clientId.length > MAX_LENGTH) return this.#long.get(clientId);
    const hash = hashOf(clientId);
    const part = this.#parts[hash & (PARTS - 1)];
    const record = part?.find(clientId, hash) ?? NONE;
    return record < 0 ? undefined : part?.generations[record];
  }

  /** Raises one floor; returns whether it moved. */
  raise(clientId: string, generation: number): boolean {
    if (clientId.length > MAX_LENGTH) {
      const moved = generation > (this.#long.get(clientId) ?? -1);
      if (moved) this.#long.set(clientId, generation);
      return moved;
    }
    const hash = hashOf(clientId);
    const part = (this.#parts[hash & (PARTS - 1)] ??= new Part(0.5 + (hash & (PARTS - 1)) / PARTS / 4));
    const record = part.find(clientId, hash);
    if (record < 0) part.add(clientId, hash, generation, ~record);
    else if (generation <= (part.generations[record] as number)) return false;
    else part.generations[record] = generation;
    return true;
  }

  /** How many floors a part has. */
  sizeOf(part: number): number {
    return this.#parts[part]?.size ?? 0;
  }

  /** Drops floors of one part. Those of long ids belong to the first part. */
  drop(part: number, isExpired: (generation: number) => boolean): void {
    this.#parts[part] = this.#parts[part]?.without(isExpired);
    if (part === 0) {
      for (const [clientId, generation] of this.#long) if (isExpired(generation)) this.#long.delete(clientId);
    }
  }
}

/** In UTF-16 code units: 15 bits of a record's header. */
const MAX_LENGTH = 0x7fff;
/** In a header: two bytes for each code unit. */
const WIDE = 0x8000;
/** Of a double: records begin at its multiples. */
const UNIT = 8;

/** Any negative number: there is no record. */
const NONE = -1;
const FIRST_SLOTS = 8;
const FIRST_UNITS = 16;

/**
 * A hash table with open addressing. A slot is the hash and the place of a record, plus 1; a record is the generation, and
 * then the length and the code units of the client id.
 */
class Part {
  #slots = new Int32Array(2 * FIRST_SLOTS);
  /** The first unit of each record is its generation. */
  generations = new Float64Array(FIRST_UNITS);
  #bytes = new Uint8Array(this.generations.buffer);
  /** Units in use. */
  #used = 0;
  readonly #fill: number;
  size = 0;

  /** @param fill - share of the slots, between 1/2 and 3/4: differs between parts, so that they do not grow at the same time */
  constructor(fill: number) {
    this.#fill = fill;
  }

  /** Adds a record for the empty slot that `find` has named. */
  add(clientId: string, hash: number, generation: number, slot: number): void {
    this.#slots[slot] = hash;
    this.#slots[slot + 1] = this.#append(clientId, generation) + 1;
    this.size++;
    if (this.size > (this.#slots.length / 2) * this.#fill) this.#rehash();
  }

  /** The part without expired floors: the same one if none is. */
  without(isExpired: (generation: number) => boolean): Part | undefined {
    const kept: number[] = [];
    for (let slot = 0; slot < this.#slots.length; slot += 2) {
      const record = this.#slots[slot + 1] as number;
      if (record > 0 && !isExpired(this.generations[record - 1] as number)) kept.push(slot);
    }
    if (kept.length === this.size) return this;
    if (kept.length === 0) return undefined;
    const part = new Part(this.#fill);
    for (const slot of kept) part.#adopt(this, this.#slots[slot] as number, (this.#slots[slot + 1] as number) - 1);
    return part;
  }

  #adopt(other: Part, hash: number, at: number): void {
    const header = other.#unitAt(at * UNIT + UNIT);
    const end = at + unitsOf(header & MAX_LENGTH, header >= WIDE);
    const to = this.#reserve(end - at);
    this.generations.set(other.generations.subarray(at, end), to);
    const slot = this.#free(hash);
    this.#slots[slot] = hash;
    this.#slots[slot + 1] = to + 1;
    this.size++;
    if (this.size > (this.#slots.length / 2) * this.#fill) this.#rehash();
  }

  /** The record of a client, or `~slot` of the slot where it belongs. One function, because each request calls it. */
  find(clientId: string, hash: number): number {
    const slots = this.#slots;
    const bytes = this.#bytes;
    const { length } = clientId;
    const last = slots.length - 1;
    // The low bits have chosen the part.
    let slot = ((hash >>> 8) * 2) & last;
    for (let record = slots[slot + 1] as number; record > 0; record = slots[slot + 1] as number) {
      const header = record * UNIT;
      const isWide = (bytes[header + 1] as number) >= WIDE >> 8;
      if (
        slots[slot] === hash &&
        ((bytes[header] as number) | ((bytes[header + 1] as number) << 8)) % WIDE === length
      ) {
        let index = 0;
        for (let at = header + 2; index < length; index++, at += isWide ? 2 : 1) {
          const low = bytes[at] as number;
          if (clientId.charCodeAt(index) !== (isWide ? low | ((bytes[at + 1] as number) << 8) : low)) break;
        }
        if (index === length) return record - 1;
      }
      slot = (slot + 2) & last;
    }
    return ~slot;
  }

  /** The first empty slot for a hash. */
  #free(hash: number): number {
    const last = this.#slots.length - 1;
    let slot = ((hash >>> 8) * 2) & last;
    while ((this.#slots[slot + 1] as number) > 0) slot = (slot + 2) & last;
    return slot;
  }

  #unitAt(byte: number): number {
    return (this.#bytes[byte] as number) | ((this.#bytes[byte + 1] as number) << 8);
  }

  /** Returns the place of the new record. */
  #append(clientId: string, generation: number): number {
    const { length } = clientId;
    const before = this.#used;
    const at = this.#reserve(unitsOf(length, false));
    this.generations[at] = generation;
    if (this.#writeNarrow(at * UNIT + UNIT, clientId)) return at;
    this.#used = before;
    this.#reserve(unitsOf(length, true));
    this.generations[at] = generation;
    this.#writeWide(at * UNIT + UNIT, clientId);
    return at;
  }

  /** Returns whether every code unit fits into a byte. */
  #writeNarrow(from: number, clientId: string): boolean {
    const bytes = this.#bytes;
    bytes[from] = clientId.length;
    bytes[from + 1] = clientId.length >> 8;
    for (let index = 0; index < clientId.length; index++) {
      const unit = clientId.charCodeAt(index);
      if (unit > 0xff) return false;
      bytes[from + 2 + index] = unit;
    }
    return true;
  }

  #writeWide(from: number, clientId: string): void {
    const bytes = this.#bytes;
    bytes[from] = clientId.length;
    bytes[from + 1] = (clientId.length | WIDE) >> 8;
    for (let index = 0; index < clientId.length; index++) {
      const unit = clientId.charCodeAt(index);
      bytes[from + 2 + 2 * index] = unit;
      bytes[from + 3 + 2 * index] = unit >> 8;
    }
  }

  #reserve(units: number): number {
    const at = this.#used;
    this.#used += units;
    if (this.#used > this.generations.length) {
      const grown = new Float64Array(Math.max(this.#used, Math.ceil(this.generations.length * 1.5)));
      grown.set(this.generations.subarray(0, at));
      this.generations = grown;
      this.#bytes = new Uint8Array(grown.buffer);
    }
    return at;
  }

  #rehash(): void {
    const slots = this.#slots;
    this.#slots = new Int32Array(slots.length * 2);
    for (let slot = 0; slot < slots.length; slot += 2) {
      if (slots[slot + 1] === 0) continue;
      const free = this.#free(slots[slot] as number);
      this.#slots[free] = slots[slot] as number;
      this.#slots[free + 1] = slots[slot + 1] as number;
    }
  }
}

function unitsOf(length: number, isWide: boolean): number {
  return 1 + Math.ceil((2 + length * (isWide ? 2 : 1)) / UNIT);
}

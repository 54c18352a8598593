import { randomInt } from 'node:crypto';

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

/**
 * Generations by client id, in typed arrays: a million floors take some 50 MB, and the garbage collector neither visits
 * nor copies them.
 */
export class FloorTable {
  readonly #parts: (Part | undefined)[] = Array.from({ length: PARTS });
  /** Ids that are too long for a part. */
  readonly #long = new Map<string, number>();

  get size(): number {
    return this.#parts.reduce((sum, part) => sum + (part?.size ?? 0), this.#long.size);
  }

  get(clientId: string): number | undefined {
    if (clientId.length > MAX_LENGTH) return this.#long.get(clientId);
    const hash = hashOf(clientId);
    const part = this.#parts[hash & (PARTS - 1)];
    const place = part?.find(clientId, hash) ?? NONE;
    return place < 0 ? undefined : part?.generationAt(place);
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
    const place = part.find(clientId, hash);
    if (place >= 0) return part.raise(place, generation);
    part.add(clientId, hash, generation, ~place);
    return true;
  }
}

/** In UTF-16 code units. Longer ids are rare; a record has to fit into what is left of a segment. */
const MAX_LENGTH = 0x3ff;
/** In a header: two bytes for each code unit. */
const WIDE = 0x8000;
/** Of a double: records begin at its multiples. */
const UNIT = 8;
/** The first place, and so the length of the first segment. */
const FIRST_UNITS = 16;
const FIRST_SLOTS = 8;

/** Any negative number: there is no record. */
const NONE = -1;

/** The records whose places have the same highest bit: each segment is twice as long as the one before. */
interface Segment {
  /** The first unit of each record is its generation. */
  readonly generations: Float64Array;
  readonly bytes: Uint8Array;
}

/**
 * A hash table with open addressing. A slot is the hash and the place of a record; a record is the generation, and then the
 * length and the code units of the client id. Records are never moved: memory that is left behind when an array grows makes
 * V8 collect garbage again and again during a large read.
 */
class Part {
  #slots = new Int32Array(2 * FIRST_SLOTS);
  /** By the number of the highest bit of their places. */
  readonly #segments: (Segment | undefined)[] = [];
  #nextPlace = FIRST_UNITS;
  readonly #fill: number;
  size = 0;

  /** @param fill - share of the slots, between 1/2 and 3/4: differs between parts, so that they do not grow at the same time */
  constructor(fill: number) {
    this.#fill = fill;
  }

  /** The place of a client's record, or `~slot` of the slot where it belongs. One function, because each request calls it. */
  find(clientId: string, hash: number): number {
    const slots = this.#slots;
    const { length } = clientId;
    const last = slots.length - 1;
    // The low bits have chosen the part.
    let slot = ((hash >>> 8) * 2) & last;
    for (let place = slots[slot + 1] as number; place > 0; place = slots[slot + 1] as number) {
      if (slots[slot] === hash) {
        const highest = 31 - Math.clz32(place);
        const { bytes } = this.#segments[highest] as Segment;
        const header = (place - (1 << highest)) * UNIT + UNIT;
        const isWide = (bytes[header + 1] as number) >= WIDE >> 8;
        if (((bytes[header] as number) | ((bytes[header + 1] as number) << 8)) % WIDE === length) {
          let index = 0;
          for (let at = header + 2; index < length; index++, at += isWide ? 2 : 1) {
            const low = bytes[at] as number;
            if (clientId.charCodeAt(index) !== (isWide ? low | ((bytes[at + 1] as number) << 8) : low)) break;
          }
          if (index === length) return place;
        }
      }
      slot = (slot + 2) & last;
    }
    return ~slot;
  }

  generationAt(place: number): number {
    const highest = 31 - Math.clz32(place);
    return (this.#segments[highest] as Segment).generations[place - (1 << highest)] as number;
  }

  /** Returns whether the generation is higher than before. */
  raise(place: number, generation: number): boolean {
    const { generations, at } = this.#record(place);
    if (generation <= (generations[at] as number)) return false;
    generations[at] = generation;
    return true;
  }

  /** Adds a record for the empty slot that `find` has named. */
  add(clientId: string, hash: number, generation: number, slot: number): void {
    this.#fillSlot(slot, hash, this.#append(clientId, generation));
  }

  #fillSlot(slot: number, hash: number, place: number): void {
    this.#slots[slot] = hash;
    this.#slots[slot + 1] = place;
    this.size++;
    if (this.size > (this.#slots.length / 2) * this.#fill) this.#rehash();
  }

  /** The first empty slot for a hash. */
  #free(hash: number): number {
    const last = this.#slots.length - 1;
    let slot = ((hash >>> 8) * 2) & last;
    while ((this.#slots[slot + 1] as number) > 0) slot = (slot + 2) & last;
    return slot;
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

  /** The segment of a place, and where in it the record begins, in units. */
  #record(place: number): Segment & { readonly at: number } {
    const highest = 31 - Math.clz32(place);
    const { generations, bytes } = this.#segments[highest] as Segment;
    return { generations, bytes, at: place - (1 << highest) };
  }

  /** Returns the place of the new record. */
  #append(clientId: string, generation: number): number {
    const { length } = clientId;
    const isWide = /[^\0-\xff]/.test(clientId);
    const place = this.#reserve(unitsOf(length, isWide));
    const { generations, bytes, at } = this.#record(place);
    generations[at] = generation;
    let to = at * UNIT + UNIT;
    bytes[to++] = length;
    bytes[to++] = (length | (isWide ? WIDE : 0)) >> 8;
    for (let index = 0; index < length; index++) {
      const unit = clientId.charCodeAt(index);
      bytes[to++] = unit;
      if (isWide) bytes[to++] = unit >> 8;
    }
    return place;
  }

  /** Returns the place of as many units in one segment. Skips the rest of a segment that is too short for them. */
  #reserve(units: number): number {
    let place = this.#nextPlace;
    let highest = 31 - Math.clz32(place);
    for (; place + units > 2 << highest; highest++) place = 2 << highest;
    if (!this.#segments[highest]) {
      const generations = new Float64Array(1 << highest);
      this.#segments[highest] = { generations, bytes: new Uint8Array(generations.buffer) };
    }
    this.#nextPlace = place + units;
    return place;
  }
}

function unitsOf(length: number, isWide: boolean): number {
  return 1 + Math.ceil((2 + length * (isWide ? 2 : 1)) / UNIT);
}

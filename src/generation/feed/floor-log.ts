import type { Clock } from '../../core/clock';
import { FIRST_TIME_MS } from '../generation';

/** A floor, and when this process learned of it. */
export interface MovedFloor {
  readonly clientId: string;
  readonly generation: number;
  /** Time of the move in ms, by the clock of the feed. */
  readonly movedAt: number;
}

/** Floors at one moment. */
export interface MovedFloors {
  readonly count: number;
  readonly floors: Iterable<MovedFloor>;
}

/** Moves in the order of their time. Only the last one may grow; the others shrink to the floors that are current. */
interface Chunk {
  readonly clientIds: string[];
  readonly generations: Float64Array;
  readonly movedAt: Float64Array;
  /** Change at which a floor was replaced; 0 while it is current. Absent while all of them are. */
  replacedBy?: Float64Array;
  /** Where each floor was before the others were removed. */
  readonly slots?: Uint16Array;
  live: number;
}

/** A power of two: a million clients in one map would block the event loop for 50 ms whenever it grows. */
const PARTS = 256;
const CHUNK = 1_024;
const MIN_TRIM_INTERVAL_MS = 60_000;
const FLOORS_PER_TRIM = 100_000;

/**
 * The floors of a relay in the order of their moves: each floor once, and what has moved since a time costs no more than
 * that. A list that is being sent does not change, however many floors move meanwhile.
 */
export class FloorLog {
  readonly #clock: Clock;
  readonly #keepMs: number;
  /** Of the last move of a client; in parts, because one large map would block the event loop whenever it grows. */
  readonly #moveOf = Array.from({ length: PARTS }, () => new Map<string, number>());
  readonly #chunks: Chunk[] = [];
  #moves = 0;
  #changes = 0;
  #latestMs = 0;
  #isTold = false;
  #horizonMs = 0;
  #trimmedMs = 0;
  #nextTrim = Infinity;
  size = 0;
  /** Called after each move. */
  onMove: () => void = () => undefined;

  /** @param keepMs - how long floors that are times are kept */
  constructor(clock: Clock, keepMs: number) {
    this.#clock = clock;
    this.#keepMs = keepMs;
  }

  /** Number of moves so far. */
  get revision(): number {
    return this.#moves;
  }

  /** Lower floors that are times may have been removed; 0 while none was. */
  get horizonMs(): number {
    return this.#horizonMs;
  }

  /** Moves in memory: those of current floors, and of replaced ones that are not removed yet. */
  get kept(): number {
    return this.#chunks.reduce((sum, { clientIds }) => sum + clientIds.length, 0);
  }

  /** A time in ms: every later move gets a later one. Never steps back. */
  nowMs(): number {
    this.#isTold = true;
    return (this.#latestMs = Math.max(this.#latestMs, this.#clock()));
  }

  /** Raises one floor; returns whether it moved. */
  raise(clientId: string, generation: number): boolean {
    // Otherwise each read of the whole source would bring back what was removed.
    if (generation >= FIRST_TIME_MS && generation < this.#horizonMs) return false;
    const moveOf = this.#moveOf[partOf(clientId)] as Map<string, number>;
    const known = moveOf.get(clientId);
    if (known !== undefined && generation <= this.#generationOf(known)) return false;
    this.#changes++;
    if (known === undefined) this.size++;
    else this.#replace(known);
    moveOf.set(clientId, this.#append(clientId, generation));
    this.onMove();
    return true;
  }

  /** The floors that moved at or after a time, in that order, as they are now. */
  movedSince(ms: number): MovedFloors {
    const first = this.#firstChunkAt(ms);
    const chunks = this.#chunks.slice(first);
    const lengths = { last: chunks.at(-1)?.clientIds.length ?? 0, changes: this.#changes };
    const [partial, ...whole] = chunks;
    let count = whole.reduce((sum, { live }) => sum + live, 0);
    if (partial) for (const _ of currentIn(partial, ms, partial.clientIds.length, this.#changes)) count++;
    return {
      count,
      floors: (function* () {
        for (const [index, chunk] of chunks.entries()) {
          const length = index === chunks.length - 1 ? lengths.last : chunk.clientIds.length;
          yield* currentIn(chunk, ms, length, lengths.changes);
        }
      })(),
    };
  }

  /** Accepts again what was removed by a clock that was ahead: called before everything is read anew. */
  startOver(nowMs: number): void {
    this.#horizonMs = Math.max(0, Math.min(this.#horizonMs, nowMs - this.#keepMs));
  }

  /** Removes floors whose tokens have all expired: at most once a minute, some 100,000 floors per call. */
  trimWhenDue(nowMs: number): void {
    if (this.#nextTrim >= this.#chunks.length) {
      if (Math.abs(nowMs - this.#trimmedMs) < MIN_TRIM_INTERVAL_MS) return;
      this.#trimmedMs = nowMs;
      this.#nextTrim = 0;
    }
    for (let seen = 0; this.#nextTrim < this.#chunks.length && seen < FLOORS_PER_TRIM; this.#nextTrim++) {
      seen += CHUNK;
      this.#trimChunk(this.#nextTrim, nowMs - this.#keepMs);
    }
  }

  #trimChunk(index: number, horizonMs: number): void {
    const { clientIds, generations, replacedBy, slots } = this.#chunks[index] as Chunk;
    for (const [at, clientId] of clientIds.entries()) {
      const generation = generations[at] as number;
      const isExpired = generation >= FIRST_TIME_MS && generation < horizonMs;
      if (!isExpired || (replacedBy?.[at] ?? 0) > 0) continue;
      this.#horizonMs = Math.max(this.#horizonMs, horizonMs);
      this.#changes++;
      this.size--;
      this.#moveOf[partOf(clientId)]?.delete(clientId);
      this.#replace(index * CHUNK + (slots?.[at] ?? at));
    }
  }

  #append(clientId: string, generation: number): number {
    // After a time was told, a move must be later than that.
    this.#latestMs = Math.max(this.#latestMs + Number(this.#isTold), this.#clock());
    this.#isTold = false;
    const at = this.#moves % CHUNK;
    if (at === 0) {
      const last = this.#chunks.length - 1;
      if (last >= 0) this.#compactIfSparse(last);
      this.#chunks.push(newChunk(CHUNK));
    }
    const chunk = this.#chunks.at(-1) as Chunk;
    chunk.clientIds.push(clientId);
    chunk.generations[at] = generation;
    chunk.movedAt[at] = this.#latestMs;
    chunk.live++;
    return this.#moves++;
  }

  #generationOf(move: number): number {
    const chunk = this.#chunks[Math.floor(move / CHUNK)] as Chunk;
    return chunk.generations[indexOf(chunk, move % CHUNK)] as number;
  }

  #replace(move: number): void {
    const index = Math.floor(move / CHUNK);
    const chunk = this.#chunks[index] as Chunk;
    chunk.replacedBy ??= new Float64Array(chunk.generations.length);
    chunk.replacedBy[indexOf(chunk, move % CHUNK)] = this.#changes;
    chunk.live--;
    const isFull = index < this.#chunks.length - 1 || this.#moves % CHUNK === 0;
    if (isFull) this.#compactIfSparse(index);
  }

  /** A list that is being sent keeps the old chunk. */
  #compactIfSparse(index: number): void {
    const chunk = this.#chunks[index] as Chunk;
    if (chunk.live * 2 <= chunk.clientIds.length) this.#chunks[index] = compacted(chunk);
  }

  /** The first chunk that may have a move at or after a time. */
  #firstChunkAt(ms: number): number {
    let [low, high] = [0, this.#chunks.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const { movedAt } = this.#chunks[middle] as Chunk;
      // The last time stays when a chunk is compacted.
      const isLast = middle === this.#chunks.length - 1;
      const last = isLast ? Infinity : (movedAt[movedAt.length - 1] as number);
      if (last < ms) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Part of a client id: by its end, where ids of one company differ. */
function partOf(clientId: string): number {
  const { length } = clientId;
  const hash = (clientId.charCodeAt(length - 1) * 31 + clientId.charCodeAt(length - 2)) * 31;
  return (hash + clientId.charCodeAt(length - 3)) & (PARTS - 1);
}

function newChunk(length: number): Chunk {
  return { clientIds: [], generations: new Float64Array(length), movedAt: new Float64Array(length), live: 0 };
}

/** The current floors of a chunk, and the time of its last move. */
function compacted(chunk: Chunk): Chunk {
  const { clientIds, generations, movedAt, replacedBy, slots } = chunk;
  const kept = [...clientIds.keys()].filter((at) => (replacedBy?.[at] ?? 0) === 0);
  return {
    clientIds: kept.map((at) => clientIds[at] as string),
    generations: Float64Array.from(kept, (at) => generations[at] as number),
    movedAt: Float64Array.from([...kept, movedAt.length - 1], (at) => movedAt[at] as number),
    slots: Uint16Array.from(kept, (at) => slots?.[at] ?? at),
    live: kept.length,
  };
}

/** Where a chunk has the floor of a slot. */
function indexOf({ slots }: Chunk, slot: number): number {
  if (!slots) return slot;
  let [low, high] = [0, slots.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((slots[middle] as number) < slot) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The floors of a chunk that moved at or after a time and were current at a change. */
function* currentIn(chunk: Chunk, ms: number, length: number, change: number): Generator<MovedFloor, void, undefined> {
  const { clientIds, generations, movedAt } = chunk;
  for (let at = 0; at < length; at++) {
    const replacedBy = chunk.replacedBy?.[at] ?? 0;
    if ((movedAt[at] as number) < ms || (replacedBy > 0 && replacedBy <= change)) continue;
    yield { clientId: clientIds[at] as string, generation: generations[at] as number, movedAt: movedAt[at] as number };
  }
}

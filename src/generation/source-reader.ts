import { withProgressLimit, withTimeLimit } from '../core/clock';
import type { Schedule } from '../core/clock';
import { FloorList } from './floors';
import type { Floors } from './floors';
import { FIRST_TIME_MS, isFloor, isGeneration } from './generation';
import type { GenerationSentinel, GenerationSnapshot, GenerationSource } from './source';
import { SourceError, noResponse } from './source-error';

/** Where the floors of a source go. */
export type FloorTarget = Pick<Floors, 'lifetimeMs' | 'raise' | 'trimWhenDue'>;

/** How one source is read. */
export interface SourceReaderOptions {
  readonly source: GenerationSource;
  readonly floors: FloorTarget;
  /** Longest time for one response, or for one page of a large one, in ms. */
  readonly timeoutMs: number;
  /** How far each read overlaps the previous one, in ms of the source's clock: room for late commits. */
  readonly overlapMs: number;
  readonly schedule: Schedule;
}

/** Floors per turn of the event loop: some 5 ms of work. */
const FLOORS_PER_TURN = 5_000;

/** Reads one source, completely at first and then what moved, and merges the response into the floors. */
export class SourceReader {
  readonly #options: SourceReaderOptions;
  #sinceMs = 0;
  #hasCounters = false;
  /** Until the first complete read. */
  #sentinel: SentinelCheck | undefined;

  constructor(options: SourceReaderOptions) {
    this.#options = options;
    const { sentinel } = options.source;
    this.#sentinel = sentinel && new SentinelCheck(sentinel, options);
  }

  close(): void {
    this.#sentinel?.close();
  }

  /** Makes the next read ask for everything. */
  startOver(): void {
    this.#sinceMs = 0;
  }

  /**
   * Resolves once the floors hold everything that the source knew when this was called, with the age of that knowledge
   * in ms: 0, unless the source follows another one.
   *
   * @throws SourceError or the source's own error: the read was not complete.
   */
  async read(): Promise<number> {
    const sentinel = this.#sentinel;
    if (sentinel && !(await sentinel.hasMoved())) {
      // Read the whole store while its publisher checks it; then only what has moved in the meantime.
      await this.#readSince();
      await sentinel.wait();
    }
    const ageMs = await this.#readSince();
    this.#sentinel = undefined;
    return ageMs;
  }

  async #readSince(): Promise<number> {
    const sinceMs = this.#sinceMs;
    let snapshot = await this.#request(sinceMs);
    // The source's clock has stepped back before `sinceMs`: changes before that time would be missing.
    if (snapshot.nowMs < sinceMs) snapshot = await this.#request(0);
    this.#requireComplete(snapshot);
    const ageMs = Math.max(0, ownTime(snapshot, 'ageMs') ?? 0);
    // The next response may come from another relay, which learned of a change while this one was out of date.
    const resumeMs = ownTime(snapshot, 'resumeMs') ?? snapshot.nowMs - ageMs - this.#options.overlapMs;
    // Counters have no time to ask from, so such a source is always read whole.
    this.#sinceMs = this.#hasCounters ? 0 : Math.max(0, resumeMs);
    return ageMs;
  }

  async #request(sinceMs: number): Promise<GenerationSnapshot> {
    const { source, timeoutMs, schedule } = this.#options;
    return withProgressLimit(
      async (progress) => {
        // Merged even after the time limit: the floors are true, only the read does not count as complete.
        const snapshot = await source.read(sinceMs, async (floors) => {
          progress();
          await this.#merge(floors);
          progress();
        });
        await this.#merge(snapshot.floors);
        const times = [snapshot.nowMs, ...OPTIONAL_TIMES.map((name) => ownTime(snapshot, name) ?? 0)];
        if (!times.every(Number.isFinite))
          throw new SourceError('the snapshot has no nowMs, or another time that is not a number');
        return snapshot;
      },
      { limitMs: timeoutMs, schedule, timeoutError: noResponse },
    );
  }

  /** Merges every valid floor, then rejects if some were not valid. */
  async #merge(floors: Iterable<unknown>): Promise<void> {
    if (floors instanceof FloorList) return this.#mergeList(floors);
    let count = 0;
    let refused = 0;
    for (const floor of floors) {
      // A million floors in one turn would delay every request.
      if (count++ % FLOORS_PER_TURN === 0 && count > 1) await new Promise((resolve) => setImmediate(resolve));
      if (!isFloor(floor)) {
        refused++;
        continue;
      }
      this.#options.floors.raise(...floor);
      if (floor[1] < FIRST_TIME_MS) this.#hasCounters = true;
    }
    if (refused > 0) throw new SourceError(`the snapshot has ${refused} entries that are not [client id, generation]`);
  }

  /** The floors of our own sources are valid, and are merged without a pair for each. */
  async #mergeList({ clientIds, generations }: FloorList): Promise<void> {
    const { floors } = this.#options;
    for (let at = 0; at < clientIds.length; at++) {
      if (at % FLOORS_PER_TURN === 0 && at > 0) await new Promise((resolve) => setImmediate(resolve));
      const generation = generations[at] as number;
      floors.raise(clientIds[at] as string, generation);
      if (generation < FIRST_TIME_MS) this.#hasCounters = true;
    }
  }

  /** A store that removes floors earlier than this process needs them would let discarded tokens pass. */
  #requireComplete(snapshot: GenerationSnapshot): void {
    const completeFromMs = ownTime(snapshot, 'completeFromMs');
    if (completeFromMs === undefined) return;
    const { lifetimeMs } = this.#options.floors;
    const keptMs = snapshot.nowMs - completeFromMs;
    if (keptMs >= lifetimeMs) return;
    const [kept, needed] = [keptMs, lifetimeMs].map((ms) => `${Math.round(ms / 60_000)} min`);
    throw new SourceError(
      `the store keeps floors for ${kept}, and this process needs those of ${needed}: ` +
        'set maxTokenAgeMs of the source where floors are published, and maxTokenAgeSeconds of each relay, ' +
        'to at least the longest maxTokenAgeSeconds',
    );
  }
}

const OPTIONAL_TIMES = ['resumeMs', 'completeFromMs', 'ageMs'] as const;

/** One that is inherited from a polluted prototype would skip changes. */
function ownTime(snapshot: GenerationSnapshot, name: (typeof OPTIONAL_TIMES)[number]): number | undefined {
  return Object.hasOwn(snapshot, name) ? snapshot[name] : undefined;
}

const CHECK_INTERVAL_MS = 250;
/** 2.5 s: a running publisher checks its store every second and repairs it within 2 s. */
const MAX_CHECKS = 10;

/** Lower than every sentinel. */
const NONE = -1;

const MISSING =
  'the store has no sentinel: it is new or has lost its floors, and its publisher has not written all of them yet; ' +
  'where no publisher writes a sentinel, set the option "sentinel" to false (?sentinel=off in a URL)';

/**
 * Decides whether a process that has just started can trust what it reads. A store that was wiped or restored looks
 * like any other store, so the process waits until the publisher has checked it too.
 */
class SentinelCheck {
  readonly #sentinel: GenerationSentinel;
  readonly #options: SourceReaderOptions;
  #first: number | undefined;
  #closed = false;

  constructor(sentinel: GenerationSentinel, options: SourceReaderOptions) {
    this.#sentinel = sentinel;
    this.#options = options;
  }

  /** Whether the publisher has raised the sentinel since the first check. */
  async hasMoved(): Promise<boolean> {
    const { timeoutMs, schedule } = this.#options;
    const reading = (async () => this.#sentinel.read())();
    const stored = await withTimeLimit(reading, timeoutMs, schedule, noResponse);
    const value = isGeneration(stored) ? stored : NONE;
    if (this.#first !== undefined && value > this.#first) return true;
    // A sentinel that falls was restored in the meantime: it has to move from there.
    this.#first = value;
    return false;
  }

  /**
   * Waits until the sentinel has moved, or long enough to know that no publisher is running.
   *
   * @throws SourceError if the store has no sentinel then.
   */
  async wait(): Promise<void> {
    for (let check = 0; check < MAX_CHECKS && !this.#closed; check++) {
      await new Promise<void>((resolve) => this.#options.schedule(resolve, CHECK_INTERVAL_MS));
      if (await this.hasMoved()) return;
    }
    if (this.#first === NONE) throw new SourceError(MISSING);
  }

  close(): void {
    this.#closed = true;
  }
}

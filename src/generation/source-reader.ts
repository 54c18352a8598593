import { withTimeLimit } from '../core/clock';
import type { Schedule } from '../core/clock';
import type { Floors } from './floors';
import { FIRST_TIME_MS, isFloor, isGeneration } from './generation';
import type { GenerationSentinel, GenerationSnapshot, GenerationSource } from './source';
import { SourceError, noResponse } from './source-error';

/** How one source is read. */
export interface SourceReaderOptions {
  readonly source: GenerationSource;
  readonly floors: Floors;
  /** Longest time for one response, in ms. */
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
   * Resolves once the floors hold everything that the source knew when this was called.
   *
   * @throws SourceError or the source's own error: the read was not complete.
   */
  async read(): Promise<void> {
    const sentinel = this.#sentinel;
    if (sentinel && !(await sentinel.hasMoved())) {
      // Read the whole store while its publisher checks it; then only what has moved in the meantime.
      await this.#readSince();
      await sentinel.wait();
    }
    await this.#readSince();
    this.#sentinel = undefined;
  }

  async #readSince(): Promise<void> {
    const sinceMs = this.#sinceMs;
    let snapshot = await this.#request(sinceMs);
    // The source's clock has stepped back before `sinceMs`: changes before that time would be missing.
    if (snapshot.nowMs < sinceMs) snapshot = await this.#request(0);
    const resumeMs = ownResumeMs(snapshot) ?? snapshot.nowMs - this.#options.overlapMs;
    // Counters have no time to ask from, so such a source is always read whole.
    this.#sinceMs = this.#hasCounters ? 0 : Math.max(0, resumeMs);
  }

  #request(sinceMs: number): Promise<GenerationSnapshot> {
    const { source, timeoutMs, schedule } = this.#options;
    const response = (async () => source.read(sinceMs))();
    // Merged even after the time limit: the floors are true, only the read does not count as complete.
    const merged = response.then((snapshot) => this.#merge(snapshot));
    return withTimeLimit(merged, timeoutMs, schedule, noResponse);
  }

  /** Merges every valid floor, then rejects if the snapshot had invalid parts. */
  async #merge(snapshot: GenerationSnapshot): Promise<GenerationSnapshot> {
    let count = 0;
    let refused = 0;
    for (const floor of snapshot.floors as Iterable<unknown>) {
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
    const { nowMs } = snapshot;
    if (Number.isFinite(nowMs) && Number.isFinite(ownResumeMs(snapshot) ?? nowMs)) return snapshot;
    throw new SourceError('the snapshot has no nowMs');
  }
}

/** Most snapshots have none; one inherited from a polluted prototype would skip changes. */
function ownResumeMs(snapshot: GenerationSnapshot): number | undefined {
  return Object.hasOwn(snapshot, 'resumeMs') ? snapshot.resumeMs : undefined;
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

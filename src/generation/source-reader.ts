import type { Schedule } from '../core/clock';
import { withTimeLimit } from '../core/clock';
import type { Floors } from './floors';
import { SentinelCheck } from './sentinel';
import type { GenerationSnapshot, GenerationSource } from './source';
import { SourceError, noResponse } from './source-error';

/** How one source is read. */
export interface SourceReaderOptions {
  readonly source: GenerationSource;
  readonly floors: Floors;
  readonly timeoutMs: number;
  /** How far each read reaches back behind the one before, in ms of the source's clock: room for late commits. */
  readonly overlapMs: number;
  readonly schedule: Schedule;
}

/** Some 5 ms of work. */
const SLICE = 5_000;

/** Reads one source, completely at first and then what moved, and merges what it answers into the floors. */
export class SourceReader {
  readonly #options: SourceReaderOptions;
  #sinceMs = 0;
  #counters = false;
  /** Until the first complete read. */
  #sentinel: SentinelCheck | undefined;

  constructor(options: SourceReaderOptions) {
    this.#options = options;
    const { sentinel } = options.source;
    this.#sentinel = sentinel && new SentinelCheck({ ...options, sentinel });
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
   * @throws SourceError or whatever the source rejects with: the read was not complete.
   */
  async read(): Promise<void> {
    const sentinel = this.#sentinel;
    if (sentinel && !(await sentinel.hasMoved())) {
      // The whole store is read while its publisher looks at it; then only what has moved in the meantime.
      await this.#readSince();
      await sentinel.wait();
    }
    await this.#readSince();
    this.#sentinel = undefined;
  }

  async #readSince(): Promise<void> {
    const sinceMs = this.#sinceMs;
    let snapshot = await this.#ask(sinceMs);
    // The source's clock has stepped back behind the time we asked from: what moved before it would be missing.
    if (snapshot.nowMs < sinceMs) snapshot = await this.#ask(0);
    const { nowMs } = snapshot;
    const resumeMs = ownResumeMs(snapshot) ?? nowMs - this.#options.overlapMs;
    // Counters have no time to ask from, so such a source is read whole.
    this.#sinceMs = this.#counters ? 0 : Math.max(0, resumeMs);
  }

  #ask(sinceMs: number): Promise<GenerationSnapshot> {
    const { source, timeoutMs, schedule } = this.#options;
    const answer = (async () => source.read(sinceMs))();
    // Merged whenever it comes: a response that is too late to count is still true.
    const merged = answer.then((snapshot) => this.#merge(snapshot));
    return withTimeLimit(merged, timeoutMs, schedule, noResponse);
  }

  /** Takes what is good of a response before judging it: a floor is never wrong for being in bad company. */
  async #merge(snapshot: GenerationSnapshot): Promise<GenerationSnapshot> {
    let refused = 0;
    for (const slice of slicesOf(snapshot.floors)) {
      // A million floors in one go would hold every request up.
      if (slice.isLater) await new Promise((resolve) => setImmediate(resolve));
      const merged = this.#options.floors.merge(slice.floors);
      refused += merged.refused;
      if (merged.counters) this.#counters = true;
    }
    if (refused > 0) throw new SourceError(`the answer has ${refused} entries that are not [client id, generation]`);
    const { nowMs } = snapshot;
    if (!Number.isFinite(nowMs) || !Number.isFinite(ownResumeMs(snapshot) ?? nowMs))
      throw new SourceError('the answer has no nowMs');
    return snapshot;
  }
}

/** Most snapshots have none: one that is inherited from a polluted prototype would skip changes. */
function ownResumeMs(snapshot: GenerationSnapshot): number | undefined {
  return Object.hasOwn(snapshot, 'resumeMs') ? snapshot.resumeMs : undefined;
}

interface Slice {
  readonly floors: Iterable<unknown>;
  readonly isLater: boolean;
}

/** Cuts floors into slices that are looked at one after the other. */
function* slicesOf(floors: Iterable<unknown>): Generator<Slice, void, undefined> {
  const iterator = floors[Symbol.iterator]();
  let next = iterator.next();
  function* take(): Generator<unknown, void, undefined> {
    for (let count = 0; count < SLICE && !next.done; count++) {
      yield next.value;
      next = iterator.next();
    }
  }
  for (let isLater = false; !next.done; isLater = true) yield { floors: take(), isLater };
}

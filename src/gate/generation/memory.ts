import { randomUUID } from 'node:crypto';
import { callUnwaited } from '../core/callbacks';
import { dependencies, readOptions, type Dependencies, type TableOf } from '../core/options';
import { keptMsOf, steadyTime, TOKEN_AGE_OPTION } from './floors';
import { requireChange } from './generation';
import { SourceError, isSameMark } from './log';
import type { Batch, Change, GenerationLog, LogReader, Mark, Unit } from './log';
import { readersOf, type Wait } from './readers';

/** Options of `memoryGenerations()`. */
export interface MemoryGenerationsOptions extends Pick<Dependencies, 'clock' | 'schedule'> {
  /** `maxTokenAgeSeconds` of the gates that read; changes are kept an hour longer. Default 86400. */
  readonly maxTokenAgeSeconds?: number | undefined;
}

const MEMORY_OPTIONS = {
  maxTokenAgeSeconds: TOKEN_AGE_OPTION,
  ...dependencies('clock', 'schedule'),
} satisfies TableOf<MemoryGenerationsOptions>;

/** A log that can be served to other processes: whoever reads it keeps the position. */
export interface ServedLog {
  /** How long changes are kept, in ms. */
  readonly keptMs: number;
  /** Returns what follows a position, or the oldest changes without one, or if it is not a position of this log. */
  read(after: string | undefined, limit?: number): Batch & { readonly position: string };
  /** Calls `listener` after each append and when the log is closed, until the returned function is called. */
  subscribe(listener: () => void): () => void;
}

/** What follows a position, and the position behind it. */
type Page = ReturnType<ServedLog['read']>;

/** A log in the memory of one process. */
export type MemoryLog = ServedLog & GenerationLog;

/** Changes per batch: about a millisecond of work. */
const CHANGES_PER_READ = 2_000;

/**
 * A log inside one process, for the embedded token server and for tests: every gate that reads it learns of a change
 * before the next request. It is empty after a restart.
 *
 * @throws TypeError when an option is wrong.
 * @example
 * ```ts
 * import { authenticate } from 'tillgate';
 * import { memoryGenerations } from 'tillgate/generations';
 *
 * const generationSource = memoryGenerations();
 * const gate = authenticate({ issuer: 'https://login.example.com', audience: 'https://api.example.com', generationSource });
 * void generationSource.append([['pos-terminal', Date.now()]]);
 * ```
 */
export function memoryGenerations(options: MemoryGenerationsOptions = {}): MemoryLog {
  const { maxTokenAgeSeconds, clock, schedule } = readOptions('memoryGenerations', options, MEMORY_OPTIONS);
  const keptMs = keptMsOf(maxTokenAgeSeconds);
  const entries = new Entries(keptMs);
  const listeners = new Set<() => void>();
  let closed = false;

  function openEntries(): Entries {
    if (closed) throw new SourceError('the log is closed');
    return entries;
  }

  function callListeners(): void {
    for (const listener of [...listeners]) listener();
  }

  function subscribe(listener: () => void): () => void {
    // One entry per subscription, even if two share a function.
    const own = (): void => callUnwaited(listener, () => undefined);
    listeners.add(own);
    return () => void listeners.delete(own);
  }

  return {
    mark: false,
    keptMs,
    read: (after, limit) => entries.read(after, limit),
    subscribe,
    reader: readersOf(schedule, (wait) => readerOf(openEntries, subscribe, wait)).reader,
    // eslint-disable-next-line @typescript-eslint/require-await -- so that wrong arguments reject instead of throwing
    async append(changes, unit) {
      openEntries();
      for (const change of changes) requireChange(change, clock());
      if (entries.append(changes, clock(), unit)) callListeners();
      return entries.mark;
    },
    close() {
      closed = true;
      callListeners();
      listeners.clear();
      return Promise.resolve();
    },
  };
}

/** Reads a log from its oldest change on. */
function readerOf(entries: () => Entries, subscribe: ServedLog['subscribe'], { pause, wake }: Wait): LogReader {
  let page: Page | undefined;
  return {
    async next(waitMs) {
      page = entries().read(page?.position);
      if (page.changes.length > 0 || waitMs === 0) return page;
      const unsubscribe = subscribe(wake);
      await pause(waitMs);
      unsubscribe();
      return (page = entries().read(page.position));
    },
    close: () => undefined,
  };
}

/** The changes of one log, oldest first, and its mark. */
class Entries {
  /** The newest mark. */
  mark: Mark | undefined;
  readonly #keptMs: number;
  readonly #steady = steadyTime();
  /** So that a position of another process is not taken for one of this log. */
  readonly #history = randomUUID();
  readonly #entries: { readonly change: Change; readonly atMs: number }[] = [];
  /** Number of the first entry. */
  #first = 0;

  constructor(keptMs: number) {
    this.#keptMs = keptMs;
  }

  /** Returns what follows a position; the position is that of the next page. */
  read(after: string | undefined, limit = CHANGES_PER_READ): Page {
    const [, owner, number] = /^(.+)-(\d{1,15})$/.exec(after ?? '') ?? [];
    const index = owner === this.#history ? Number(number) - this.#first : 0;
    const from = index > this.#entries.length ? 0 : Math.max(0, index);
    const found = this.#entries.slice(from, from + limit);
    const end = from + found.length === this.#entries.length;
    const position = `${this.#history}-${this.#first + from + found.length}`;
    // What follows may have been appended before the mark.
    return { changes: found.map(({ change }) => change), mark: end ? this.mark : undefined, end, position };
  }

  /** Returns whether the changes were appended: a unit takes place only if it expects the mark. */
  append(changes: readonly Change[], nowMs: number, unit: Unit | undefined): boolean {
    if (unit && !isSameMark(unit.expected, this.mark)) return false;
    const atMs = this.#steady(nowMs);
    for (const change of changes) this.#entries.push({ change, atMs });
    if (unit) ({ mark: this.mark } = unit);
    this.#trim(atMs - this.#keptMs);
    return true;
  }

  #trim(oldestMs: number): void {
    // One copy per thousand, not one per change.
    if ((this.#entries[999]?.atMs ?? Infinity) >= oldestMs) return;
    const kept = this.#entries.findIndex(({ atMs }) => atMs >= oldestMs);
    this.#first += this.#entries.splice(0, kept < 0 ? this.#entries.length : kept).length;
  }
}

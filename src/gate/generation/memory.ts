import { randomUUID } from 'node:crypto';
import { notify } from '../core/callbacks';
import { dependencies, readOptions } from '../core/options';
import type { Dependencies, TableOf } from '../core/options';
import { keptMsOf, steadyTime, TOKEN_AGE_OPTION } from './floors';
import { requireChange } from './generation';
import { SourceError, isSameMark } from './log';
import type { Batch, Change, GenerationLog, Mark } from './log';
import { readersOf } from './readers';

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
  /** So that a position of another process is not taken for one of this log. */
  const history = randomUUID();
  const steady = steadyTime();
  const listeners = new Set<() => void>();
  const entries: { readonly change: Change; readonly atMs: number }[] = [];
  /** Number of the first entry. */
  let first = 0;
  let mark: Mark | undefined;
  let closed = false;

  function read(after: string | undefined, limit = CHANGES_PER_READ): Batch & { readonly position: string } {
    const [, owner, number] = /^(.+)-(\d{1,15})$/.exec(after ?? '') ?? [];
    const index = owner === history ? Number(number) - first : 0;
    const from = index > entries.length ? 0 : Math.max(0, index);
    const found = entries.slice(from, from + limit);
    const end = from + found.length === entries.length;
    const position = `${history}-${first + from + found.length}`;
    // What follows may have been appended before the mark.
    return { changes: found.map(({ change }) => change), mark: end ? mark : undefined, end, position };
  }

  function trim(atMs: number): void {
    const oldestMs = atMs - keptMs;
    // One copy per thousand, not one per change.
    if ((entries[999]?.atMs ?? Infinity) >= oldestMs) return;
    const kept = entries.findIndex(({ atMs }) => atMs >= oldestMs);
    first += entries.splice(0, kept < 0 ? entries.length : kept).length;
  }

  function subscribe(listener: () => void): () => void {
    // One entry per subscription, even if two share a function.
    const own = (): void => notify(listener, () => undefined);
    listeners.add(own);
    return () => void listeners.delete(own);
  }

  const readers = readersOf(schedule, ({ pause, wake }) => {
    let position: string | undefined;
    function take(): Batch {
      if (closed) throw new SourceError('the log is closed');
      const batch = read(position);
      ({ position } = batch);
      return batch;
    }
    return {
      async next(waitMs) {
        const batch = take();
        if (batch.changes.length > 0 || waitMs === 0) return batch;
        const unsubscribe = subscribe(wake);
        await pause(waitMs);
        unsubscribe();
        return take();
      },
      close: () => undefined,
    };
  });

  return {
    mark: false,
    keptMs,
    read,
    subscribe,
    reader: readers.reader,
    // eslint-disable-next-line @typescript-eslint/require-await -- so that wrong arguments reject instead of throwing
    async append(changes, unit) {
      if (closed) throw new SourceError('the log is closed');
      for (const change of changes) requireChange(change, clock());
      if (unit && !isSameMark(unit.expected, mark)) return mark;
      const atMs = steady(clock());
      for (const change of changes) entries.push({ change, atMs });
      if (unit) ({ mark } = unit);
      trim(atMs);
      for (const listener of [...listeners]) listener();
      return mark;
    },
    close() {
      closed = true;
      for (const listener of [...listeners]) listener();
      listeners.clear();
      return Promise.resolve();
    },
  };
}

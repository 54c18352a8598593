import { AssertionError, ok } from 'node:assert';
import { withTimeLimit } from '../../core/clock';
import { isFloor } from '../../generation/generation';
import type { Floor, GenerationSource } from '../../generation/source';

/** One source under test, on an empty store of its own. */
export interface GenerationSourceFixture {
  readonly source: GenerationSource;
  /** How the test writes when the source has no `publish`: resolved means durable and readable. */
  publish?(clientId: string, generation: number): Promise<void>;
  /** A second source on the same store, as another process would open it; the case that opens it closes it. */
  another?(): Promise<GenerationSource>;
  /** Cuts every connection of the source, as a restart of the store does; the source may reconnect immediately. */
  disconnect?(): Promise<void>;
  /** Closes the source and removes its store. */
  close(): Promise<void>;
}

/** What a case works with. */
export interface SourceContext {
  readonly fixture: GenerationSourceFixture;
  readonly source: GenerationSource;
  /** Longest time for a hint, a close or a recovery, in ms. */
  readonly timeoutMs: number;
  readonly publish: (clientId: string, generation: number) => Promise<void>;
}

/** Requirements on sources, each with its test. */
export type SourceCases = Readonly<Record<string, (context: SourceContext) => Promise<void>>>;

/** The result of one read, merged as every reader merges it. */
export interface MergedRead {
  readonly floors: ReadonlyMap<string, number>;
  readonly nowMs: number;
}

/** A time in ms of which the first generations are made. */
export const TIME = 1_800_000_000_000;

/** Reads, and checks the shape of the result. */
export async function readFrom(source: Pick<GenerationSource, 'read'>, sinceMs: number): Promise<MergedRead> {
  const { floors, nowMs } = await source.read(sinceMs);
  const merged = new Map<string, number>();
  for (const floor of floors) {
    ok(isFloor(floor), `read(${sinceMs}) returned an entry that is not [client id, generation]`);
    merged.set(floor[0], Math.max(floor[1], merged.get(floor[0]) ?? 0));
  }
  ok(Number.isFinite(nowMs), `read(${sinceMs}) returned nowMs ${nowMs}, expected a time in ms`);
  return { floors: merged, nowMs };
}

/** Expects these floors in the result of a read; it may have others too. */
export function expectFloors({ floors }: MergedRead, expected: Iterable<Floor>, what: string): void {
  const wrong = [...expected].flatMap(([clientId, generation]) => {
    const got = floors.get(clientId) ?? 'missing';
    return got === generation ? [] : [`${JSON.stringify(clientId)} is ${got} instead of ${generation}`];
  });
  const shown = wrong.length > 5 ? [...wrong.slice(0, 5), `${wrong.length - 5} more`] : wrong;
  ok(wrong.length === 0, `${what}: ${shown.join(', ')}`);
}

/** A watch that counts its hints. */
export interface WatchSpy {
  readonly hints: number;
  /** How often the source has reported that the watch is lost. */
  readonly losses: number;
  /** Resolves at the next hint or loss. */
  next(): Promise<void>;
  readonly stop: () => void;
}

/** Watches a source; `undefined` when it cannot be watched. */
export async function watchSpy({ source, timeoutMs }: SpyOptions): Promise<WatchSpy | undefined> {
  if (!source.watch) return undefined;
  const counts = { hints: 0, losses: 0 };
  let waiting: (() => void)[] = [];
  function count(what: keyof typeof counts): void {
    counts[what] += 1;
    for (const resolve of waiting) resolve();
    waiting = [];
  }
  const watching = source.watch(
    () => count('hints'),
    () => count('losses'),
  );
  const stop = await inTime(watching, timeoutMs, 'watch() did not resolve');
  function next(): Promise<void> {
    const hint = inTime(new Promise<void>((resolve) => waiting.push(resolve)), timeoutMs, 'no hint came');
    // The caller may fail before it awaits this.
    hint.catch(() => undefined);
    return hint;
  }
  return Object.assign(counts, { next, stop });
}

type SpyOptions = Pick<SourceContext, 'source' | 'timeoutMs'>;

/**
 * Waits for `work`, with a timer that keeps the process alive meanwhile.
 *
 * @throws AssertionError when the time is over first
 */
export function inTime<Value>(work: Promise<Value>, timeoutMs: number, failure: string): Promise<Value> {
  return withTimeLimit(work, timeoutMs, keepAliveSchedule, (ms) => {
    return new AssertionError({ message: `${failure} within ${ms} ms` });
  });
}

function keepAliveSchedule(task: () => void, delayMs: number): { cancel(): void } {
  const timer = setTimeout(task, delayMs);
  return { cancel: () => clearTimeout(timer) };
}

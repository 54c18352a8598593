import { AssertionError, deepStrictEqual, ok } from 'node:assert';
import type { Batch, Change, GenerationSource, LogReader, Mark } from 'tillgate/generations';

/** One source under test, on an empty log of its own. */
export interface GenerationSourceFixture {
  readonly source: GenerationSource;
  /** How the test appends when the source has no `append`: resolved means durable and readable. */
  append?(changes: readonly Change[]): Promise<void>;
  /** A second source on the same log, as another process would open it; the case that opens it closes it. */
  another?(): Promise<GenerationSource>;
  /** Cuts every connection of the source, as a restart of the engine does; the source may reconnect immediately. */
  disconnect?(): Promise<void>;
  /** Empties the log, as an operator or a lost disk does. */
  wipe?(): Promise<void>;
  /** Remembers the state of the log; the returned function puts it back, as a restore or a lagging copy does. */
  snapshot?(): Promise<() => Promise<void>>;
  /** Keeps the engine from responding, as one that hangs or a lost route does, until the returned function is called. */
  stall?(): Promise<() => Promise<void>>;
  /** Closes the source and removes its log. */
  close(): Promise<void>;
}

/** What a case works with. */
export interface SourceContext {
  readonly fixture: GenerationSourceFixture;
  readonly source: GenerationSource;
  readonly count: number;
  readonly timeoutMs: number;
  readonly append: (...changes: Change[]) => Promise<void>;
  /** Opens a reader that is closed after the case. */
  readonly open: () => LogReader;
}

/** A time in ms of which the generations are made: in the past, as real ones are. */
export const TIME = 1_700_000_000_000;
const KEPT_MS = 1e12;
const RETRY_MS = 10;

export function numbered(count: number): Change[] {
  return Array.from({ length: count }, (_, index): Change => [`client-${index}`, TIME + index]);
}

export function markOf(epoch: string, unit: number): Mark {
  return { epoch, unit, completeMs: TIME + unit, keptMs: KEPT_MS };
}

/** Everything that a new reader returns. */
export async function readAll(source: GenerationSource): Promise<readonly Change[]> {
  const reader = source.reader();
  const { changes } = await readToEnd(reader);
  reader.close();
  return changes;
}

/** Reads to the end of the log, and checks the shape of what is returned. */
export async function readToEnd(reader: LogReader): Promise<Batch> {
  const changes: Change[] = [];
  let mark: Mark | undefined;
  for (;;) {
    const batch = await reader.next(0);
    for (const change of batch.changes) {
      const [clientId, generation] = change;
      const isChange = change.length === 2 && typeof clientId === 'string' && Number.isSafeInteger(generation);
      ok(isChange, 'an entry is not a change');
      changes.push([clientId, generation]);
    }
    mark = batch.mark ?? mark;
    if (batch.end) return { changes, mark, end: true };
  }
}

/** Reads until a mark has been read. */
export async function readUntil(reader: LogReader, mark: Mark): Promise<Batch> {
  const changes: Change[] = [];
  return retried(async () => {
    const batch = await readToEnd(reader);
    changes.push(...batch.changes);
    deepStrictEqual(batch.mark, mark);
    return { changes, mark, end: true };
  });
}

/** The next changes, however often `next()` returns without one. */
export async function nextChanges(reader: LogReader, waitMs: number): Promise<readonly Change[]> {
  for (;;) {
    const { changes } = await reader.next(waitMs);
    if (changes.length > 0) return [...changes];
  }
}

/** Repeats what fails for a moment after a cut or a restore. */
export async function retried<Value>(work: () => Promise<Value> | Value): Promise<Value> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === 200) throw error;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

/** Gives a call that has begun the time to reach its engine, so that it is waiting there. */
export function reachEngine(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 50));
}

/**
 * Waits for `work`, with a timer that keeps the process alive meanwhile.
 *
 * @throws AssertionError when the time is over first
 */
export function inTime<Value>(work: Promise<Value>, timeoutMs: number, failure: string): Promise<Value> {
  return new Promise((resolve, reject) => {
    const late = new AssertionError({ message: `${failure} within ${timeoutMs} ms` });
    const timer = setTimeout(() => reject(late), timeoutMs);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** Appends after a fault, one by one: fewer than a reader has read, as many, and more. */
export async function readsWhatFollows(
  { append, open }: SourceContext,
  fault: (reader: LogReader) => Promise<unknown>,
): Promise<void> {
  const reader = open();
  await readToEnd(reader);
  await fault(reader);
  const known = new Set<string>();
  for (let n = 0; n < 7; n++) {
    await retried(() => append([`after-${n}`, TIME]));
    await retried(async () => {
      for (const [clientId] of (await readToEnd(reader)).changes) known.add(clientId);
      ok(known.has(`after-${n}`), `the change after-${n} was not read`);
    });
  }
}

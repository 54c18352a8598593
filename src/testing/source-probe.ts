import { AssertionError, ok } from 'node:assert';
import { isFloor } from '../generation/generation';
import type { Floor, GenerationSource } from '../generation/source';
import type { SourceBench } from './source-fixture';

/** What one read answered, merged as every reader merges it. */
export interface Answer {
  readonly floors: ReadonlyMap<string, number>;
  readonly nowMs: number;
}

/** A watch that counts its hints. */
export interface Witness {
  /** Hints so far. */
  readonly hints: number;
  /** How often the source has said that the watch is lost. */
  readonly losses: number;
  /** Resolves at the next hint or loss from now on. */
  next(): Promise<void>;
  readonly stop: () => void;
}

/** Reads, and checks the shape of the answer. */
export async function readFrom(source: GenerationSource, sinceMs: number): Promise<Answer> {
  const { floors, nowMs } = await source.read(sinceMs);
  const merged = new Map<string, number>();
  for (const floor of floors) {
    ok(isFloor(floor), `read(${sinceMs}) answered an entry that is not [client id, generation]`);
    merged.set(floor[0], Math.max(floor[1], merged.get(floor[0]) ?? 0));
  }
  ok(Number.isFinite(nowMs), `read(${sinceMs}) answered nowMs ${nowMs}, expected a time in ms`);
  return { floors: merged, nowMs };
}

/** Expects these floors in an answer; others may be there too. */
export function expectFloors(answer: Answer, expected: Iterable<Floor>, question: string): void {
  const wrong: string[] = [];
  for (const [clientId, generation] of expected) {
    const got = answer.floors.get(clientId);
    if (got !== generation) wrong.push(`${JSON.stringify(clientId)} is ${got ?? 'missing'} instead of ${generation}`);
  }
  const shown = wrong.length > 5 ? [...wrong.slice(0, 5), `${wrong.length - 5} more`] : wrong;
  ok(wrong.length === 0, `${question}: ${shown.join(', ')}`);
}

/** Publishes many floors, `width` at a time. */
export async function publishAll({ publish }: SourceBench, floors: readonly Floor[], width = 200): Promise<void> {
  for (let start = 0; start < floors.length; start += width) {
    await Promise.all(
      floors.slice(start, start + width).map(([clientId, generation]) => publish(clientId, generation)),
    );
  }
}

/** Watches a source; `undefined` when it cannot be watched. */
export async function witnessOf(source: GenerationSource, timeoutMs: number): Promise<Witness | undefined> {
  if (!source.watch) return undefined;
  let [hints, losses] = [0, 0];
  let announce: (() => void)[] = [];
  const heard = (): void => {
    announce.forEach((resolve) => resolve());
    announce = [];
  };
  const onHint = (): void => {
    hints++;
    heard();
  };
  const onLoss = (): void => {
    losses++;
    heard();
  };
  const stop = await inTime(source.watch(onHint, onLoss), timeoutMs, 'watch() did not stand');
  return {
    get hints() {
      return hints;
    },
    get losses() {
      return losses;
    },
    next() {
      const next = inTime(new Promise<void>((resolve) => announce.push(resolve)), timeoutMs, 'no hint came');
      // Whoever asked may fail before it waits.
      next.catch(() => undefined);
      return next;
    },
    stop,
  };
}

/**
 * Waits for `work`, with a timer that keeps the process alive meanwhile.
 *
 * @throws AssertionError when the time is over first.
 */
export async function inTime<Value>(work: Promise<Value>, timeoutMs: number, failure: string): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new AssertionError({ message: `${failure} within ${timeoutMs} ms` })), timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

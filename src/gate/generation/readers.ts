import type { Schedule } from '../core/clock';
import { SourceError, type GenerationSource, type LogReader } from './log';

/** The wait of a reader for something to follow. */
export interface Wait {
  /** Resolves after a time in ms, or when `wake()` is called. A reader that pauses in a loop has to end it when it is closed. */
  readonly pause: (ms: number) => Promise<void>;
  /** Ends the pause, where there is one: called by a hint, and when the reader is closed. */
  readonly wake: () => void;
}

/**
 * Opens the readers of a source. `close()` closes those that are open: what they wait for ends, and their `next()` rejects with a
 * `SourceError`, as it does once a reader is closed.
 *
 * @param make - makes one reader at the oldest change; called for each `reader()`
 * @example
 * ```ts
 * import { readersOf } from 'tillgate/generations';
 * import type { Change, GenerationSource, Schedule } from 'tillgate/generations';
 *
 * // A list that other code of this process appends to.
 * export function listGenerations(list: readonly Change[], schedule: Schedule): GenerationSource {
 *   const readers = readersOf(schedule, ({ pause }) => {
 *     let position = 0;
 *     return {
 *       async next(waitMs) {
 *         if (position === list.length && waitMs > 0) await pause(waitMs);
 *         const changes = list.slice(position, position + 2_000);
 *         position += changes.length;
 *         return { changes, end: position === list.length };
 *       },
 *       close: () => undefined,
 *     };
 *   });
 *   return { mark: false, reader: readers.reader, close: async () => readers.close() };
 * }
 * ```
 */
export function readersOf(
  schedule: Schedule,
  make: (wait: Wait) => LogReader,
): Pick<GenerationSource, 'reader'> & { close(): void } {
  const open = new Set<LogReader>();
  const requireOpen = (reader: LogReader): void => {
    if (!open.has(reader)) throw new SourceError('the reader is closed');
  };
  return {
    reader() {
      const wait = waiting(schedule);
      const made = make(wait);
      const reader: LogReader = {
        async next(waitMs) {
          requireOpen(reader);
          try {
            return await made.next(waitMs);
          } finally {
            // It may have opened a connection since it was closed.
            if (!open.has(reader)) made.close();
            requireOpen(reader);
          }
        },
        close() {
          open.delete(reader);
          made.close();
          wait.wake();
        },
      };
      open.add(reader);
      return reader;
    },
    close() {
      for (const reader of open) reader.close();
    },
  };
}

function waiting(schedule: Schedule): Wait {
  let end = (): void => undefined;
  return {
    pause: (ms) =>
      new Promise((resolve) => {
        const timer = schedule(resolve, ms);
        end = () => {
          timer.cancel();
          resolve();
        };
      }),
    wake: () => end(),
  };
}

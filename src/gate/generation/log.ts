import { called, callUnwaited } from '../core/callbacks';
import { errorLabel } from '../core/logger';

/** Tokens of this client with a lower generation are refused. */
export type Change = readonly [clientId: string, generation: number];

/** What the publisher writes every second: lost and restored with the changes, it tells what became of them. */
export interface Mark {
  /** Another one whenever the publisher cannot prove that the log still holds all that it has appended. */
  readonly epoch: string;
  /** Number of the unit that wrote this mark, within its epoch. */
  readonly unit: number;
  /** When the log was last known to hold every change, in ms by the publisher's clock; 0 while an epoch is being written. */
  readonly completeMs: number;
  /** How long changes are kept, in ms: older ones may have been trimmed. */
  readonly keptMs: number;
}

/** What a reader returns: what followed its position, oldest first. */
export interface Batch {
  /** At most some 2,000, so that no batch blocks the event loop. */
  readonly changes: readonly Change[];
  /** The newest mark that was read with them; `undefined` if none was. */
  readonly mark?: Mark | undefined;
  /** Whether the log had nothing after them at some time after the call. */
  readonly end: boolean;
}

/** Reads one log from its oldest change on. Owns its position, which outlives failures and cut connections. */
export interface LogReader {
  /**
   * Resolves with what follows the position, and moves the position behind it. When nothing follows, waits up to
   * `waitMs` for something. If the mark is of another epoch than the position, it first reads on to the end, then starts again
   * at the oldest change; if the log no longer has the position, it starts again immediately: repeating changes is harmless, leaving
   * one out is not. Rejects with a `SourceError` when the log cannot be read; the next call then continues where this one would have.
   */
  next(waitMs: number): Promise<Batch>;
  /** Ends a pending `next()` and releases what the reader holds. */
  close(): void;
}

/** One step of a publisher: it takes place only if the log's mark is the one that the publisher knows. */
export interface Unit {
  /** The mark that the log must have; `undefined`: it must have none. */
  readonly expected: Mark | undefined;
  /** The mark that replaces it. */
  readonly mark: Mark;
}

/**
 * Where generations come from: a log of changes. The extension point for any engine with an ordered log.
 * docs/maintainers/generations.md has the argument why no change is lost.
 */
export interface GenerationSource {
  /** Whether a publisher keeps a mark: without one, a stopped publisher and a rolled-back log are not noticed. */
  readonly mark: boolean;
  /** Opens a reader at the oldest change. Does not wait; failures are those of `next()`. */
  reader(): LogReader;
  /**
   * Appends changes, durably and in this order. With a unit, atomically: compares the log's mark with `unit.expected`,
   * appends, and replaces the mark by `unit.mark`; if the comparison fails, nothing is appended. Changes that have been kept for
   * `unit.mark.keptMs` may be trimmed.
   *
   * @returns the mark of the log afterwards: `unit.mark` if the unit took place
   * @throws SourceError when it is not known whether the changes were appended
   */
  append?(changes: readonly Change[], unit?: Unit): Promise<Mark | undefined>;
  /** Releases connections and timers, and closes the readers. `next()` and `append()` reject afterwards; a second call does nothing. */
  close?(): Promise<void>;
}

/** A source that can be appended to, as `memoryGenerations()`, `redisGenerations()` and `postgresGenerations()` make it. */
export type GenerationLog = GenerationSource & Required<Pick<GenerationSource, 'append' | 'close'>>;

/**
 * Opens a reader whose failures are all those of `next()`: a source may throw where it opens or closes one. It is opened by
 * the first `next()`, and a source that could not is asked again by the one after that.
 */
export function openReader(source: GenerationSource): LogReader {
  let reader: LogReader | undefined;
  return {
    next: (waitMs) => called(() => (reader ??= source.reader()).next(waitMs)),
    close: () =>
      callUnwaited(
        () => reader?.close(),
        () => undefined,
      ),
  };
}

/** Whether two marks are the same one: of one epoch and of one unit; two that are `undefined` are. For the comparison of `append()`. */
export function isSameMark(one: Mark | undefined, other: Mark | undefined): boolean {
  return one?.epoch === other?.epoch && one?.unit === other?.unit;
}

/**
 * A log that cannot be read or appended to. The message goes to the log of the process: a source puts no credentials and nothing of a
 * response into it, and hands the error of its client on as `cause`.
 */
export class SourceError extends Error {
  /** Always `SourceError`. */
  override readonly name = 'SourceError';
}

/**
 * Refuses a log whose format is not 1. A mark names the format where it is another one; this version would misread such a log,
 * so neither reader nor publisher uses it.
 *
 * @param format - the member `format` of the stored mark: a number or its text; `undefined`, as every mark of today has it, is 1
 * @throws SourceError when it is another one; the message says what to do
 */
export function requireFormat(format: unknown): void {
  if (format === undefined || format === 1 || format === '1') return;
  throw new SourceError(
    'the log is in a later format, which this version of Tillgate cannot read: update this process (UPGRADE.md)',
  );
}

/** Makes the `SourceError` for an engine that did not respond within a time limit, in ms. */
export function noResponse(limitMs: number): SourceError {
  return new SourceError(`no response within ${limitMs} ms`);
}

/**
 * Describes a failure for operators: a `SourceError` by its message, any other error by its name and `code` alone, because the message of
 * another library can contain a connection string.
 */
export function describeFailure(error: unknown): string {
  return error instanceof SourceError ? error.message : errorLabel(error);
}

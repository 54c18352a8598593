import { randomUUID } from 'node:crypto';
import { ask, notify } from '../core/callbacks';
import { withTimeLimit } from '../core/clock';
import type { Timer } from '../core/clock';
import { errorText } from '../core/logger';
import { ownMembers } from '../core/objects';
import { dependencies, option, readOptions } from '../core/options';
import type { Dependencies, TableOf } from '../core/options';
import { Outage } from '../core/outage';
import { keptMsOf, TOKEN_AGE_OPTION } from './floors';
import { requireChange } from './generation';
import { SourceError, describeFailure, isSameMark, noResponse, openReader } from './log';
import type { Change, GenerationSource, Mark, Unit } from './log';

/** Options of `startPublisher()`. */
export interface PublisherOptions extends Pick<Dependencies, 'clock' | 'schedule' | 'logger' | 'random'> {
  /** The log; it has one publisher. */
  readonly source: GenerationSource;
  /**
   * Returns every change that can still matter, from the publisher's own durable record: those of the last
   * `maxTokenAgeSeconds` plus an hour; more do no harm. Called at the start, and when the log was wiped, restored or failed over.
   */
  readonly changes: () => Iterable<Change> | AsyncIterable<Change>;
  /** `maxTokenAgeSeconds` of the gates that read; changes are kept an hour longer. Default 86400. */
  readonly maxTokenAgeSeconds?: number | undefined;
  /** How long `publish()` waits for the log, in ms. Default 2000. */
  readonly timeoutMs?: number | undefined;
}

/** Appends changes to a log, and keeps its mark. */
export interface Publisher {
  /**
   * Publishes a change, which must be in the publisher's own record already. Resolves with whether it is in the log; `false`: it is
   * pending, and appended as soon as possible.
   *
   * @throws TypeError when it is not a change, or its generation lies in the future
   */
  publish(clientId: string, generation: number): Promise<boolean>;
  /** Resolves when the log holds every change for the first time; never rejects. */
  ready(): Promise<void>;
  status(): PublisherStatus;
  /** Ends the publisher. What is pending is appended by the next one, from its record. */
  close(): void;
}

/** State of a publisher. */
export interface PublisherStatus {
  /** `starting`: the log does not hold every change yet; `current`: it does; `failing`: the log cannot be reached. */
  readonly state: 'starting' | 'current' | 'failing';
  /** Changes that are not in the log. */
  readonly pending: number;
  /** Time since the last mark was written, in ms; absent before the first one. */
  readonly silentMs?: number;
  readonly lastError?: string;
}

/** A row for a log that can be appended to. */
export const APPENDABLE_SOURCE = option.required(
  option.withMethods<GenerationSource & Required<Pick<GenerationSource, 'append'>>>(
    ['append'],
    'a generation source with append()',
  ),
);

const PUBLISHER_OPTIONS = {
  source: APPENDABLE_SOURCE,
  changes: option.required(option.callable<PublisherOptions['changes']>()),
  maxTokenAgeSeconds: TOKEN_AGE_OPTION,
  timeoutMs: option.number({ unit: 'ms', min: 1, max: 600_000 }, 2_000),
  ...dependencies('clock', 'schedule', 'logger', 'random'),
} satisfies TableOf<PublisherOptions>;

const MARK_EVERY_MS = 1_000;
const PAUSES = { firstMs: 250, longestMs: 1_000 };
/** Changes per unit: some 10 ms of work for an engine. */
const UNIT_SIZE = 500;

/**
 * Starts the publisher of a log: an authorization server's own, for example. Every change is appended at least once; the
 * mark tells readers that the log is complete. docs/maintainers/generations.md has the protocol.
 *
 * @throws TypeError when an option is wrong
 * @example
 * ```ts
 * import { Redis } from 'ioredis';
 * import { redisGenerations, startPublisher } from 'tillgate/generations';
 *
 * const changed = new Map<string, number>(); // in a real server a table, written in the transaction of the change
 * const publisher = startPublisher({
 *   source: redisGenerations({ client: new Redis('rediss://redis.example.com') }),
 *   changes: () => changed,
 * });
 *
 * export async function describeClient(clientId: string) {
 *   changed.set(clientId, Math.max((changed.get(clientId) ?? 0) + 1, Date.now()));
 *   return { published: await publisher.publish(clientId, changed.get(clientId)!) };
 * }
 * ```
 */
export function startPublisher(options: PublisherOptions): Publisher {
  const given = readOptions('startPublisher', options, PUBLISHER_OPTIONS);
  const { source, changes: readChanges, maxTokenAgeSeconds, timeoutMs, clock, schedule, random, logger } = given;
  const keptMs = keptMsOf(maxTokenAgeSeconds);
  const pending = new Map<string, number>();
  /** The mark that the log has, as far as is known; `undefined` until an epoch has begun. */
  let last: Mark | undefined;
  let running: Promise<void> | undefined;
  let timer: Timer | undefined;
  const outage = new Outage(PAUSES, clock, random);
  /** Of the last mark that called the log complete. */
  let completeMs = 0;
  let writtenMs: number | undefined;
  let isComplete = false;
  let closed = false;
  let resolveReady = (): void => undefined;
  const ready = new Promise<void>((resolve) => (resolveReady = resolve));

  const limited = <Value>(work: Promise<Value>): Promise<Value> => withTimeLimit(work, timeoutMs, schedule, noResponse);
  const appendUnit = (changes: readonly Change[], unit: Unit): Promise<Mark | undefined> =>
    limited(ask(() => source.append(changes, unit)));

  /** Appends what is pending and writes a mark. */
  async function step(): Promise<void> {
    if (!last) await beginEpoch();
    do {
      const changes = [...pending].slice(0, UNIT_SIZE);
      const isAll = changes.length === pending.size;
      await commit(changes, isAll ? Math.max(completeMs + 1, clock()) : (last?.completeMs ?? 0));
    } while (pending.size > 0 && !closed);
  }

  /** One unit. Throws when the log has another mark than the one written last. */
  async function commit(changes: readonly Change[], nextCompleteMs: number): Promise<void> {
    const expected = last as Mark;
    const mark = { epoch: expected.epoch, unit: expected.unit + 1, completeMs: nextCompleteMs, keptMs };
    // Without a response it may have taken place, or may still: another unit in its place could lie before a position
    // that was read. So the epoch ends with it.
    last = undefined;
    const found = await appendUnit(changes, { expected, mark });
    if (!isSameMark(found, mark)) return lost(found);
    last = mark;
    for (const [clientId, generation] of changes) {
      if (pending.get(clientId) === generation) pending.delete(clientId);
    }
    isComplete = nextCompleteMs > 0;
    if (isComplete) [completeMs, writtenMs] = [nextCompleteMs, clock()];
  }

  function lost(found: Mark | undefined): never {
    const what = found ? 'another mark than the one written last' : 'no mark';
    logger.warn(
      { found },
      `the log of generations has ${what}: it is written anew, with every change that can still matter`,
    );
    isComplete = false;
    throw new SourceError(`the log has ${what}: it was wiped, restored or failed over, or has two publishers`);
  }

  /**
   * Makes sure that the log holds every change that can still matter, under a new epoch. Its first mark is written before
   * the log is read: if the log goes back while it is read, the unit after that finds another mark.
   */
  async function beginEpoch(): Promise<void> {
    const first = { epoch: randomUUID(), unit: 1, completeMs: 0, keptMs };
    const before = await appendUnit([], { expected: undefined, mark: first });
    if (!isSameMark(before, first)) {
      const found = await appendUnit([], { expected: before, mark: first });
      if (!isSameMark(found, first)) throw new SourceError('the log has changed meanwhile');
      // Marks must move, also if the clock of the publisher before this one was ahead.
      completeMs = Math.max(completeMs, before?.completeMs ?? 0);
    }
    [last, isComplete] = [first, false];
    try {
      await appendMissing(await readUpTo(first));
    } catch (error) {
      // An epoch that was not written to its end must never be called complete.
      last = undefined;
      throw error;
    }
  }

  async function appendMissing(floors: ReadonlyMap<string, number>): Promise<void> {
    let chunk: Change[] = [];
    for await (const change of await ask(readChanges)) {
      if (!isPublishable(change) || change[1] <= (floors.get(change[0]) ?? -1)) continue;
      if (chunk.push(change) < UNIT_SIZE) continue;
      await commit(chunk, 0);
      chunk = [];
    }
    if (chunk.length > 0) await commit(chunk, 0);
  }

  /** The highest generation of each client in a log that has this mark. */
  async function readUpTo(first: Mark): Promise<ReadonlyMap<string, number>> {
    const reader = openReader(source);
    const floors = new Map<string, number>();
    let mark: Mark | undefined;
    try {
      for (let end = false; !end;) {
        const batch = ownMembers(await limited(reader.next(0)));
        for (const [clientId, generation] of batch.changes) {
          floors.set(clientId, Math.max(generation, floors.get(clientId) ?? 0));
        }
        [mark, end] = [batch.mark ?? mark, batch.end];
      }
    } finally {
      reader.close();
    }
    if (!isSameMark(mark, first)) throw new SourceError('the log that is read is another one, or lags');
    return floors;
  }

  /** A wrong change must not keep the others from being published. */
  function isPublishable(change: Change): boolean {
    try {
      requireChange(change, clock());
      return true;
    } catch (error) {
      logger.error({ detail: (error as Error).message }, 'a change cannot be published, it is left out');
      return false;
    }
  }

  async function run(): Promise<void> {
    timer?.cancel();
    let pauseMs = MARK_EVERY_MS;
    try {
      await step();
      outage.end((fields) => logger.info(fields, 'generations can be published again'));
      resolveReady();
    } catch (error) {
      if (closed) return;
      pauseMs = outage.fail(describeFailure(error), (failure) => {
        logger.warn({ pending: pending.size, ...failure }, 'generations could not be published, it is retried');
      });
    }
    if (closed) return;
    timer = schedule(start, pauseMs);
  }

  /** Runs a step; one at a time. */
  function start(): Promise<void> {
    running ??= run().finally(() => (running = undefined));
    return running;
  }

  async function publish(clientId: string, generation: number): Promise<boolean> {
    requireChange([clientId, generation], clock());
    // A late, lower generation must not replace a pending one.
    const isRaised = generation > (pending.get(clientId) ?? -1);
    if (isRaised) pending.set(clientId, generation);
    const isPending = (): boolean => (pending.get(clientId) ?? -1) >= generation;
    // The step that is running may have begun without this change.
    const stepped = (running ?? Promise.resolve()).then(() => (closed || !isPending() ? undefined : start()));
    await withTimeLimit(stepped, timeoutMs, schedule, noResponse).catch(() => undefined);
    return !isPending();
  }

  notify(start, (error) => logger.error({ error: errorText(error) }, 'generations are no longer published'));
  return {
    publish,
    ready: () => ready,
    status: () => ({
      state: outage.failures > 0 ? 'failing' : isComplete ? 'current' : 'starting',
      pending: pending.size,
      ...(writtenMs !== undefined && { silentMs: Math.max(0, clock() - writtenMs) }),
      ...(outage.lastError !== undefined && { lastError: outage.lastError }),
    }),
    close() {
      closed = true;
      timer?.cancel();
    },
  };
}

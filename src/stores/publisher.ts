import { randomUUID } from 'node:crypto';
import type { Dependencies } from 'tillgate';
import { describeFailure, isEarly, isSameMark, noResponse, requireChange, SourceError } from 'tillgate/generations';
import type { Change, GenerationSource, Mark, Timer, Unit } from 'tillgate/generations';
import {
  called,
  callUnwaited,
  dependencies,
  errorText,
  keptMsOf,
  option,
  Outage,
  readOptions,
  steadyTime,
  TOKEN_AGE_OPTION,
  withTimeLimit,
} from 'tillgate/internal';
import type { TableOf } from 'tillgate/internal';

/** Options of `startPublisher()`. */
export interface PublisherOptions extends Pick<Dependencies, 'clock' | 'schedule' | 'logger'> {
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
   * pending, and appended as soon as possible; one of the future, because the clock was set back, when its time has come.
   *
   * @throws TypeError when it is not a change, or its generation is not a time in ms
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
const APPENDABLE_SOURCE = option.required(
  option.withMethods<GenerationSource & Required<Pick<GenerationSource, 'append'>>>(
    ['append'],
    'a generation source with append()',
  ),
);

const PUBLISHER_OPTIONS = {
  source: APPENDABLE_SOURCE,
  changes: option.required(option.callable<PublisherOptions['changes']>()),
  maxTokenAgeSeconds: TOKEN_AGE_OPTION,
  timeoutMs: option.number({ unit: 'milliseconds', min: 1, max: 600_000 }, 2_000),
  ...dependencies('clock', 'schedule', 'logger'),
} satisfies TableOf<PublisherOptions>;

type GivenOptions = ReturnType<typeof readOptions<typeof PUBLISHER_OPTIONS>>;

const MARK_EVERY_MS = 1_000;
const PAUSES = { firstMs: 250, longestMs: 1_000 };
/** Changes per unit: some 10 ms of work for an engine. */
const UNIT_SIZE = 500;
/** How far clocks may be apart: a change that lies further ahead does not keep the mark from calling the log complete. */
const AWAITED_MS = 3_600_000;

/**
 * Starts the publisher of a log: an authorization server's own, for example. Every change is appended at least once; the
 * mark tells readers that the log is complete. docs/maintainers/generations.md has the protocol.
 *
 * @throws TypeError when an option is wrong
 * @example
 * ```ts
 * import { Redis } from 'ioredis';
 * import { redisGenerations, startPublisher } from '@tillgate/stores';
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
  const publisher = new LogPublisher(given);
  const failed = (error: unknown): void =>
    given.logger.error({ error: errorText(error) }, 'generations are no longer published');
  callUnwaited(() => publisher.start(), failed);
  return {
    publish: (clientId, generation) => publisher.publish(clientId, generation),
    ready: () => publisher.ready,
    status: () => publisher.status(),
    close: () => publisher.close(),
  };
}

/** Appends what is pending in units, each with the mark that follows it, and begins an epoch where the log has another mark. */
class LogPublisher {
  readonly #options: GivenOptions;
  readonly #startedMs: number;
  readonly #steady = steadyTime();
  // A log has one publisher: there is none to keep out of step with.
  readonly #outage: Outage;
  /** Changes that the log does not have; some it cannot take yet, because their time has not come. */
  readonly #pending = new Map<string, Change>();
  #isEarlyReported = false;
  /** The mark that the log has, as far as is known; `undefined` until an epoch has begun. */
  #last: Mark | undefined;
  /** Of the last mark that called the log complete; 0 while it is not. */
  #completeMs = 0;
  #writtenMs: number | undefined;
  #running: Promise<void> | undefined;
  #timer: Timer | undefined;
  #isClosed = false;
  #resolveReady = (): void => undefined;
  readonly ready = new Promise<void>((resolve) => (this.#resolveReady = resolve));

  constructor(options: GivenOptions) {
    this.#options = options;
    this.#startedMs = options.clock();
    this.#outage = new Outage(PAUSES, options.clock, () => 0);
  }

  async publish(clientId: string, generation: number): Promise<boolean> {
    const { timeoutMs, schedule } = this.#options;
    const change: Change = [clientId, generation];
    this.#keep(change);
    const isPending = (): boolean => this.#pending.has(keyOf(change));
    // The step that is running may have begun without this change.
    const isDone = (): boolean => this.#isClosed || !isPending();
    const stepped = (this.#running ?? Promise.resolve()).then(() => (isDone() ? undefined : this.start()));
    await withTimeLimit(stepped, timeoutMs, schedule, noResponse).catch(() => undefined);
    return !isPending();
  }

  status(): PublisherStatus {
    const { failures, lastError } = this.#outage;
    return {
      state: failures > 0 ? 'failing' : this.#completeMs > 0 ? 'current' : 'starting',
      pending: this.#pending.size,
      ...(this.#writtenMs !== undefined && { silentMs: Math.max(0, this.#options.clock() - this.#writtenMs) }),
      ...(lastError !== undefined && { lastError }),
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
  }

  /** Runs a step; one at a time. */
  start(): Promise<void> {
    this.#running ??= this.#run().finally(() => (this.#running = undefined));
    return this.#running;
  }

  async #run(): Promise<void> {
    const { schedule, logger } = this.#options;
    this.#timer?.cancel();
    let pauseMs = MARK_EVERY_MS;
    try {
      await this.#step();
      this.#outage.end((fields) => logger.info(fields, 'generations can be published again'));
      this.#resolveReady();
    } catch (error) {
      if (this.#isClosed) return;
      pauseMs = this.#outage.fail(describeFailure(error), (failure) =>
        logger.warn({ pending: this.#pending.size, ...failure }, 'generations could not be published, it is retried'),
      );
    }
    if (this.#isClosed) return;
    this.#timer = schedule(() => this.start(), pauseMs);
  }

  /** Appends what is pending and writes a mark. */
  async #step(): Promise<void> {
    if (!this.#last) await this.#beginEpoch();
    let isLeft: boolean;
    do {
      const { changes, isAll } = this.#nextUnit();
      isLeft = changes.length === UNIT_SIZE;
      await this.#commit(changes, isAll);
    } while (isLeft && !this.#isClosed);
  }

  /**
   * Begins an epoch, in which every change that can still matter is appended again: comparing with what the log holds could
   * mistake a wrong entry for a later change. The record comes first: while it cannot be read, the log stays as it is.
   */
  async #beginEpoch(): Promise<void> {
    const record: Change[] = [];
    for await (const change of await called(this.#options.changes)) record.push(change);
    const first = { epoch: randomUUID(), unit: 1, completeMs: 0, keptMs: this.#keptMs() };
    const before = await this.#append([], { expected: undefined, mark: first });
    if (!isSameMark(before, first)) {
      const found = await this.#append([], { expected: before, mark: first });
      if (!isSameMark(found, first)) throw new SourceError('the log has changed meanwhile');
    }
    this.#last = first;
    this.#completeMs = 0;
    for (const change of record) {
      try {
        this.#keep(change);
      } catch (error) {
        // A wrong change must not keep the others from being published.
        const detail = (error as Error).message;
        this.#options.logger.error({ detail }, 'a change cannot be published, it is left out');
      }
    }
  }

  /** What the log can take now, and whether it has everything then, apart from what the next hour does not bring. */
  #nextUnit(): { readonly changes: readonly Change[]; readonly isAll: boolean } {
    const { clock, logger } = this.#options;
    const nowMs = clock();
    const changes: Change[] = [];
    let latestMs = 0;
    let isAll = true;
    for (const change of this.#pending.values()) {
      if (isEarly(change, nowMs)) {
        latestMs = Math.max(latestMs, change[1]);
        isAll &&= change[1] > nowMs + AWAITED_MS;
      } else if (changes.push(change) === UNIT_SIZE) return { changes, isAll: false };
    }
    if (latestMs > 0 && !this.#isEarlyReported) logger.warn({ aheadMs: latestMs - nowMs }, EARLY);
    this.#isEarlyReported = latestMs > 0;
    return { changes, isAll };
  }

  /** One unit. Throws when the log has another mark than the one written last. */
  async #commit(changes: readonly Change[], isAll: boolean): Promise<void> {
    const { clock } = this.#options;
    const expected = this.#last as Mark;
    const nowMs = clock();
    // It is never ahead of the clock, and moves on where the clock was set back.
    const allMs = nowMs < this.#completeMs ? this.#completeMs + 1 : nowMs;
    const completeMs = isAll ? allMs : expected.completeMs;
    const mark = { ...expected, unit: expected.unit + 1, completeMs, keptMs: this.#keptMs() };
    // Without a response it may have taken place, or may still: another unit in its place could lie before a position
    // that was read. So the epoch ends with it.
    this.#last = undefined;
    const found = await this.#append(changes, { expected, mark });
    if (!isSameMark(found, mark)) return this.#lost(found);
    this.#last = mark;
    for (const change of changes) this.#pending.delete(keyOf(change));
    this.#completeMs = completeMs;
    if (completeMs > 0) this.#writtenMs = clock();
  }

  #lost(found: Mark | undefined): never {
    const what = found ? 'another mark than the one written last' : 'no mark';
    this.#options.logger.warn(
      { found },
      `the log of generations has ${what}: it is written anew, with every change that can still matter`,
    );
    this.#completeMs = 0;
    throw new SourceError(`the log has ${what}: it was wiped, restored or failed over, or has two publishers`);
  }

  async #append(changes: readonly Change[], unit: Unit): Promise<Mark | undefined> {
    const { source, timeoutMs, schedule } = this.#options;
    // The record is no longer kept from here: a later mark would call a log complete that lacks what changed since.
    if (this.#isClosed) throw new SourceError('the publisher is closed');
    const appended = called(() => source.append(changes, unit));
    return withTimeLimit(appended, timeoutMs, schedule, noResponse);
  }

  /** Keeps a change for the next unit, or until its time has come, because the clock was set back. */
  #keep(change: Change): void {
    const nowMs = this.#options.clock();
    requireChange(change, isEarly(change, nowMs) ? change[1] : nowMs);
    this.#pending.set(keyOf(change), change);
  }

  /** How long changes are kept: longer while the clock is ahead, because nothing may be trimmed by a clock that is wrong. */
  #keptMs(): number {
    const { clock, maxTokenAgeSeconds } = this.#options;
    const nowMs = clock();
    return keptMsOf(maxTokenAgeSeconds) + Math.max(0, nowMs - this.#startedMs - this.#steady(nowMs));
  }
}

const EARLY = 'changes of the future are pending until their time has come';

/** One key for the same change, however often it is read. */
function keyOf([clientId, generation]: Change): string {
  return `${generation} ${clientId}`;
}

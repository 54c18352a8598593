import { setImmediate as turn } from 'node:timers/promises';
import { withTimeLimit, type Clock, type Schedule, type Timer } from '../core/clock';
import { callUnwaited } from '../core/callbacks';
import type { ActivityPublisher } from '../core/activity-channels';
import type { GenerationStatus } from '../core/gate-status';
import { errorText, type Logger } from '../core/logger';
import { ownMembers } from '../core/objects';
import { Outage } from '../core/outage';
import type { Floors } from './floors';
import { Freshness, type FreshnessLimits } from './freshness';
import { isGeneration, isInFuture, WILDCARD, type GenerationRule } from './generation';
import { describeFailure, noResponse, openReader } from './log';
import type { Batch, Change, GenerationSource, LogReader } from './log';

/** How the generations of one issuer's tokens are verified, and its floors kept up to date with a log. */
export interface FollowerOptions extends Omit<FreshnessLimits, 'lifetimeMs'> {
  /** In every log line, to tell the sources apart. */
  readonly issuer: string;
  readonly rule: GenerationRule;
  /** Where floors come from; without one they are learned from tokens only. */
  readonly source: GenerationSource | undefined;
  /** Whether `close()` closes the source too: for a source that was made for this follower. */
  readonly ownsSource: boolean;
  /** Longest `exp - iat` that verification accepts, in ms: older floors are dropped. */
  readonly maxTokenAgeMs: number;
  /** While the floors may be out of date: refuses with 503, or accepts with a warning in the log. */
  readonly onStale: 'reject' | 'accept';
  /** Longest pause between reads, in ms. */
  readonly pollMs: number;
  /** Longest time for one read, in ms. */
  readonly readTimeoutMs: number;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly random: () => number;
  readonly logger: Logger;
}

type FollowedOptions = FollowerOptions & { readonly source: GenerationSource };

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 30_000;
/** How long a read may wait while a mark that moves is waited for. */
const MARK_POLL_MS = 250;
/** A request that waits for the first read is answered this long after the limit of one read. */
const SETTLE_MARGIN_MS = 1_000;
/** After a read that found nothing new, the next one begins this long after it began: an engine may respond before the wait is over. */
const SHORTEST_ROUND_MS = 250;
/** Silence of this length is reported. */
const REPORTED_SILENCE_MS = 60_000;

/** A smaller generation is not a time in ms. */
const MAX_LATE_MS = 86_400_000;

/** Keeps the floors of one issuer up to date with one log until `close()`, and knows how old they are. */
export class FollowedLog {
  readonly #options: FollowedOptions;
  readonly #floors: Floors;
  readonly #activity: ActivityPublisher<'generations'>;
  readonly #freshness: Freshness;
  readonly #outage: Outage;
  #reader: LogReader;
  #timer: Timer | undefined;
  #isClosed = false;
  /** When the log was last read again from its start. */
  #restartedMs = -Infinity;
  #reads = 0;
  #failures = 0;
  #isFutureReported = false;
  #isSilenceReported = false;
  #resolveReady = (): void => undefined;
  #resolveSettled = (): void => undefined;
  /** Resolves when the floors are fresh for the first time; never rejects. */
  readonly ready = new Promise<void>((resolve) => (this.#resolveReady = resolve));
  /** Resolves once it is known whether they are. */
  readonly settled = new Promise<void>((resolve) => (this.#resolveSettled = resolve));

  /** @param activity - publishes the reads of the source, and how late changes arrive after the first complete one */
  constructor(options: FollowedOptions, floors: Floors, activity: ActivityPublisher<'generations'>) {
    const { issuer, maxStalenessMs, maxSilenceMs, skewMs, readTimeoutMs, clock, schedule, random, logger } = options;
    this.#options = options;
    this.#floors = floors;
    this.#activity = activity;
    const { lifetimeMs } = floors;
    this.#freshness = new Freshness({ maxStalenessMs, maxSilenceMs, skewMs, lifetimeMs }, options.source.mark);
    const pauses = { firstMs: FIRST_RETRY_MS, longestMs: Math.min(LONGEST_RETRY_MS, maxStalenessMs / 4) };
    this.#outage = new Outage(pauses, clock, random);
    this.#reader = this.#open();
    const settleTimer = schedule(this.#resolveSettled, readTimeoutMs + SETTLE_MARGIN_MS);
    const cancel = (): void => settleTimer.cancel();
    this.settled.then(cancel, cancel);
    const failed = (error: unknown): void =>
      logger.error({ issuer, error: errorText(error) }, 'generations are no longer read');
    callUnwaited(() => this.#follow(), failed);
  }

  state(): Exclude<GenerationStatus['source'], 'none'> {
    return this.#freshness.state(this.#options.clock());
  }

  status(): Omit<GenerationStatus, 'source' | 'changes' | 'problem' | 'floors'> {
    const nowMs = this.#options.clock();
    const ageMs = this.#freshness.ageMs(nowMs);
    const silentMs = this.#freshness.silentMs(nowMs);
    const lastError = this.#outage.lastError ?? this.#freshness.problem;
    return {
      ...(ageMs !== undefined && { ageMs }),
      ...(silentMs !== undefined && { silentMs }),
      ...(lastError !== undefined && { lastError }),
      reads: this.#reads,
      failures: this.#failures,
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#reader.close();
    this.#resolveSettled();
  }

  /** Follows the log until `close()`; never rejects. */
  async #follow(): Promise<void> {
    while (!this.#isClosed) {
      const startedMs = this.#options.clock();
      const waitMs = this.#pauseMs();
      const round = this.#pause(SHORTEST_ROUND_MS);
      try {
        const batch = await this.#next(waitMs);
        const isNew = !this.#isClosed && this.#take(batch, startedMs);
        // A question without a wait, at the start or after a step of the clock, needs none: the next one has a wait.
        if (batch.end && !isNew && waitMs > 0 && this.#pauseMs() > 0) await round;
      } catch (error) {
        if (!this.#isClosed) await this.#failed(error);
      }
      this.#timer?.cancel();
      // A log that never pauses must not starve the process.
      await turn();
    }
  }

  /** Reads the next batch. A reader that does not respond is replaced: it may hang for ever. */
  async #next(waitMs: number): Promise<Batch> {
    const { readTimeoutMs, schedule } = this.#options;
    const current = this.#reader;
    return withTimeLimit(current.next(waitMs), waitMs + readTimeoutMs, schedule, () => {
      current.close();
      if (!this.#isClosed) this.#reader = this.#open();
      return noResponse(readTimeoutMs);
    });
  }

  /** How long the next read may wait for something to follow. */
  #pauseMs(): number {
    const { pollMs, maxStalenessMs, clock, random } = this.#options;
    const nowMs = clock();
    if (this.#freshness.isOutOfDate(nowMs) || this.#outage.failures > 0) return 0;
    // Jitter of a tenth, so that a fleet does not poll in step.
    const pauseMs = Math.min(pollMs, maxStalenessMs / 3) * (1 - random() / 10);
    return Math.floor(this.#freshness.isWaiting(nowMs) ? Math.min(MARK_POLL_MS, pauseMs) : pauseMs);
  }

  #pause(ms: number): Promise<void> {
    this.#timer?.cancel();
    return new Promise((resolve) => (this.#timer = this.#options.schedule(resolve, ms)));
  }

  /** Returns whether a floor has risen. */
  #take(batch: Batch, startedMs: number): boolean {
    // Own members only: one inherited from a polluted prototype would be a mark that nobody wrote.
    const { changes, mark, end } = ownMembers(batch);
    const nowMs = this.#options.clock();
    const risen = changes.filter((change) => this.#apply(change, nowMs));
    this.#freshness.note({ mark, end, startedMs, unreadFrom: this.#floors.earliest }, nowMs);
    if (end) this.#reachedEnd(nowMs);
    this.#floors.turn(nowMs);
    if (this.#floors.isEarliestDue(nowMs) && Math.abs(nowMs - this.#restartedMs) >= this.#options.pollMs) {
      this.#readAgain(nowMs);
    }
    this.#reportSilence(nowMs);
    if (this.#freshness.state(nowMs) === 'fresh') {
      this.#resolveReady();
      this.#resolveSettled();
    }
    return risen.length > 0;
  }

  /** Returns whether a floor has risen. */
  #apply([clientId, generation]: Change, nowMs: number): boolean {
    const { issuer, skewMs, logger } = this.#options;
    if (typeof clientId !== 'string' || clientId === WILDCARD || !isGeneration(generation)) {
      // The position is behind it already: failing here would leave out the changes after it.
      logger.error({ issuer }, 'an entry of the log is not a change, it is skipped');
      return false;
    }
    if (!isInFuture(generation, nowMs, skewMs)) return this.#floors.raise(clientId, generation);
    // A wrong number must not lock the client out; where a clock was wrong, it counts when its time has come.
    this.#floors.keep(clientId, generation, nowMs);
    if (this.#isFutureReported) return false;
    this.#isFutureReported = true;
    const given = { issuer, clientId, generation, aheadMs: generation - nowMs };
    logger.error(given, 'the log has a generation of the future: it is read again when that time has come');
    return false;
  }

  #reachedEnd(nowMs: number): void {
    const { issuer, logger } = this.#options;
    this.#reads++;
    this.#outage.end((fields) => logger.info({ issuer, ...fields }, 'generations can be read again'));
    if (this.#floors.earliest === Infinity) this.#isFutureReported = false;
    if (!this.#freshness.isWaiting(nowMs)) this.#resolveSettled();
  }

  #readAgain(nowMs: number): void {
    this.#floors.raiseAllDue(nowMs);
    this.#restartedMs = nowMs;
    this.#reader.close();
    this.#reader = this.#open();
  }

  async #failed(error: unknown): Promise<void> {
    const { issuer, clock, logger } = this.#options;
    this.#failures++;
    this.#resolveSettled();
    const pauseMs = this.#outage.fail(describeFailure(error), (failure) => {
      const ageMs = this.#freshness.ageMs(clock());
      logger.warn({ issuer, ...failure, ageMs }, 'generations cannot be read');
    });
    await this.#pause(pauseMs);
  }

  #reportSilence(nowMs: number): void {
    const { issuer, logger } = this.#options;
    const silentMs = this.#freshness.silentMs(nowMs) ?? 0;
    if (silentMs < REPORTED_SILENCE_MS === !this.#isSilenceReported) return;
    this.#isSilenceReported = !this.#isSilenceReported;
    if (this.#isSilenceReported) logger.warn({ issuer, silentMs }, 'the publisher of generations is not heard from');
    else logger.info({ issuer }, 'the publisher of generations is heard from again');
  }

  /** Opens a reader that publishes its reads. */
  #open(): LogReader {
    const reader = openReader(this.#options.source);
    let isAtEnd = false;
    const lateMs = ({ changes }: Batch): number[] => {
      if (!isAtEnd) return [];
      const late = changes.map(([, generation]) => this.#options.clock() - generation);
      return late.filter((ms) => ms < MAX_LATE_MS).map((ms) => Math.max(0, ms));
    };
    return {
      next: async (waitMs) => {
        const batch = await this.#activity.during(() => reader.next(waitMs), lateMs);
        isAtEnd ||= batch.end;
        return batch;
      },
      close: () => reader.close(),
    };
  }
}

import { setImmediate as turn } from 'node:timers/promises';
import { withTimeLimit } from '../core/clock';
import type { Clock, Schedule, Timer } from '../core/clock';
import { notify } from '../core/callbacks';
import type { GenerationStatus } from '../core/status';
import { errorText } from '../core/logger';
import type { Logger } from '../core/logger';
import { ownMembers } from '../core/objects';
import { Outage } from '../core/outage';
import { MAX_AHEAD_MS } from './floors';
import type { Floors } from './floors';
import { isGeneration, isInFuture, WILDCARD } from './generation';
import type { GenerationRule } from './generation';
import { describeFailure, noResponse, openReader } from './log';
import type { Batch, Change, GenerationSource, Mark } from './log';

/** How the generations of one issuer's tokens are verified, and its floors kept up to date with a log. */
export interface FollowerOptions {
  /** In every log line, to tell the sources apart. */
  readonly issuer: string;
  readonly rule: GenerationRule;
  /** Whether stamped tokens raise floors. */
  readonly learn: boolean;
  /** Where floors come from; without one they are learned from tokens only. */
  readonly source: GenerationSource | undefined;
  /** Whether `close()` closes the source too: for a source that was made for this follower. */
  readonly ownsSource: boolean;
  /** Longest `exp - iat` that verification accepts, in ms: older floors are dropped. */
  readonly maxTokenAgeMs: number;
  /** While the floors may be out of date: refuses with 503, or accepts with a warning in the log. */
  readonly onStale: 'reject' | 'accept';
  /** Longest time since the log was read to its end, in ms; past it the floors are stale. */
  readonly maxStalenessMs: number;
  /** Longest time since the publisher was heard from, in ms; past it the floors are stale too. */
  readonly maxSilenceMs: number;
  /** Longest pause between reads, in ms. */
  readonly pollMs: number;
  /** Longest time for one read, in ms. */
  readonly readTimeoutMs: number;
  /** Tolerance between this clock and the publisher's, in ms. */
  readonly skewMs: number;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly random: () => number;
  readonly logger: Logger;
}

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 30_000;
/** After a start or an outage, how long a mark that moves is waited for: a publisher writes one every second. */
const MARK_WAIT_MS = 5_000;
const MARK_POLL_MS = 250;
/** A request that waits for the first read is answered this long after the limit of one read. */
const SETTLE_MARGIN_MS = 1_000;
/** After a read that found nothing new, the next one begins this long after it began: an engine may respond before the wait is over. */
const SHORTEST_ROUND_MS = 250;
/** Silence of this length is reported. */
const REPORTED_SILENCE_MS = 60_000;

/** A log that is followed. */
export interface FollowedLog {
  /** Resolves when the floors are fresh for the first time; never rejects. */
  readonly ready: Promise<void>;
  /** Resolves once it is known whether they are. */
  readonly settled: Promise<void>;
  state(): Exclude<GenerationStatus['source'], 'none'>;
  status(): Omit<GenerationStatus, 'source' | 'changes' | 'problem' | 'floors'>;
  close(): void;
}

/** Keeps the floors of one issuer up to date with one log until `close()`, and knows how old they are. */
export function followLog(options: FollowerOptions, source: GenerationSource, floors: Floors): FollowedLog {
  const { issuer, maxStalenessMs, maxSilenceMs, pollMs, readTimeoutMs, skewMs, clock, schedule, random, logger } =
    options;
  const pauses = { firstMs: FIRST_RETRY_MS, longestMs: Math.min(LONGEST_RETRY_MS, maxStalenessMs / 4) };
  const outage = new Outage(pauses, clock, random);
  let reader = openReader(source);
  let closed = false;
  let timer: Timer | undefined;
  /** When the last read that reached the end of the log began. */
  let readMs: number | undefined;
  /** The mark that was read last. */
  let lastMark: Mark | undefined;
  /** When the publisher was last known to be alive: the mark moved, and was not older than this. */
  let heardMs: number | undefined;
  /** Until then, a mark that moves is waited for. */
  let waitUntilMs: number | undefined;
  let wasFresh = false;
  let silenceReported = false;
  /** The earliest generation in the log whose time has not come: from there on the log counts as unread. */
  let earliest: number | undefined;
  /** The earliest one that is more than an hour ahead: it is not kept. */
  let earliestWrong: number | undefined;
  let earlyReported = false;
  /** When the log was last read again from its start. */
  let restartedMs = -Infinity;
  let reads = 0;
  let failures = 0;
  /** What is wrong with the log that was read last. */
  let problem: string | undefined;
  let resolveReady = (): void => undefined;
  let resolveSettled = (): void => undefined;
  const ready = new Promise<void>((resolve) => (resolveReady = resolve));
  const settled = new Promise<void>((resolve) => (resolveSettled = resolve));
  const settleTimer = schedule(resolveSettled, readTimeoutMs + SETTLE_MARGIN_MS);
  settled.then(
    () => settleTimer.cancel(),
    () => undefined,
  );

  /** Age of the last complete read, in ms; negative when the clock has stepped back since. */
  function age(): number | undefined {
    return readMs === undefined ? undefined : clock() - readMs;
  }

  /** How long the publisher was not heard from, in ms. */
  function silence(): number | undefined {
    return heardMs === undefined ? undefined : Math.max(0, clock() - heardMs);
  }

  function state(): ReturnType<FollowedLog['state']> {
    const nowMs = clock();
    if (readMs === undefined) return 'starting';
    const ageMs = nowMs - readMs;
    // After the clock stepped back the age is unknown, which counts as stale until the next read.
    if (ageMs < 0 || ageMs > maxStalenessMs) return 'stale';
    if (!source.mark) return 'fresh';
    const isKnown = heardMs !== undefined && isKeptLongEnough() && !isWaiting(nowMs);
    if (!isKnown) return wasFresh ? 'stale' : 'starting';
    return nowMs - (heardMs as number) > maxSilenceMs ? 'silent' : 'fresh';
  }

  /** Follows the log until `close()`; never rejects. */
  async function follow(): Promise<void> {
    while (!closed) {
      const startedMs = clock();
      const waitMs = pauseMs();
      const round = pause(SHORTEST_ROUND_MS);
      try {
        const batch = await next(waitMs);
        const isNew = !closed && take(batch, startedMs);
        // A question without a wait, at the start or after a step of the clock, needs none: the next one has a wait.
        if (batch.end && !isNew && waitMs > 0 && pauseMs() > 0) await round;
      } catch (error) {
        if (!closed) await failed(error);
      }
      timer?.cancel();
      // A log that never pauses must not starve the process.
      await turn();
    }
  }

  /** Reads the next batch. A reader that does not respond is replaced: it may hang for ever. */
  async function next(waitMs: number): Promise<Batch> {
    const current = reader;
    return withTimeLimit(current.next(waitMs), waitMs + readTimeoutMs, schedule, () => {
      current.close();
      if (!closed) reader = openReader(source);
      return noResponse(readTimeoutMs);
    });
  }

  /** How long the next read may wait for something to follow. */
  function pauseMs(): number {
    const ageMs = age() ?? -1;
    // Too old where the clock was set, or the process suspended, while the last read waited.
    if (ageMs < 0 || ageMs > maxStalenessMs || outage.failures > 0) return 0;
    // Jitter of a tenth, so that a fleet does not poll in step.
    const pauseMs = Math.min(pollMs, maxStalenessMs / 3) * (1 - random() / 10);
    return Math.floor(isWaiting(clock()) ? Math.min(MARK_POLL_MS, pauseMs) : pauseMs);
  }

  function isWaiting(nowMs: number): boolean {
    const leftMs = (waitUntilMs ?? 0) - nowMs;
    // More than the whole after the clock has stepped back.
    return leftMs > 0 && leftMs <= MARK_WAIT_MS;
  }

  function isKeptLongEnough(): boolean {
    return lastMark === undefined || lastMark.keptMs >= floors.lifetimeMs;
  }

  function pause(ms: number): Promise<void> {
    timer?.cancel();
    return new Promise((resolve) => (timer = schedule(resolve, ms)));
  }

  /** Returns whether a floor has risen. */
  function take(batch: Batch, startedMs: number): boolean {
    // Own members only: one inherited from a polluted prototype would be a mark that nobody wrote.
    const { changes, mark, end } = ownMembers(batch);
    const nowMs = clock();
    // A clock that stepped back must not lengthen the silence that is tolerated.
    if (heardMs !== undefined) heardMs = Math.min(heardMs, nowMs);
    let isNew = false;
    for (const change of changes) if (apply(change, nowMs)) isNew = true;
    // Before the end there may be changes that the mark covers.
    if (mark && end) note(mark, nowMs);
    if (end) reachedEnd(startedMs, nowMs);
    floors.turn(nowMs);
    if (isEarliestDue(nowMs)) readAgain(nowMs);
    reportSilence();
    if (state() !== 'fresh') return isNew;
    wasFresh = true;
    resolveReady();
    resolveSettled();
    return isNew;
  }

  /** Returns whether a floor has risen. */
  function apply([clientId, generation]: Change, nowMs: number): boolean {
    if (typeof clientId !== 'string' || clientId === WILDCARD || !isGeneration(generation)) {
      // The position is behind it already: failing here would leave out the changes after it.
      logger.error({ issuer }, 'an entry of the log is not a change, it is skipped');
      return false;
    }
    if (!isInFuture(generation, nowMs, skewMs)) return floors.raise(clientId, generation);
    // A wrong number must not lock the client out; where a clock was wrong, it counts when its time has come.
    earliest = Math.min(generation, earliest ?? generation);
    if (generation <= nowMs + MAX_AHEAD_MS) floors.keep(clientId, generation);
    else earliestWrong = Math.min(generation, earliestWrong ?? generation);
    if (earlyReported) return false;
    earlyReported = true;
    const given = { issuer, clientId, generation, aheadMs: generation - nowMs };
    logger.error(given, 'the log has a generation of the future: it is read again when that time has come');
    return false;
  }

  /** Whether the time of the earliest one has come, or one that was not kept comes within an hour now. */
  function isEarliestDue(nowMs: number): boolean {
    const isDue = earliest !== undefined && !isInFuture(earliest, nowMs, skewMs);
    const isAwaited = (earliestWrong ?? Infinity) <= nowMs + MAX_AHEAD_MS;
    return (isDue || isAwaited) && Math.abs(nowMs - restartedMs) >= pollMs;
  }

  function readAgain(nowMs: number): void {
    for (const clientId of [...floors.pending.keys()]) floors.raiseDue(clientId, nowMs);
    [earliest, earliestWrong, restartedMs] = [undefined, undefined, nowMs];
    reader.close();
    reader = openReader(source);
  }

  /** A mark moves when its time is later than that of the mark before it; one that went back has to move from there. */
  function note(mark: Mark, nowMs: number): void {
    const before = lastMark;
    lastMark = mark;
    if (mark.completeMs === 0) return;
    const isAhead = mark.completeMs > nowMs + skewMs;
    const isComparable = before?.epoch === mark.epoch || (before?.completeMs !== 0 && !isAhead);
    const hasMoved = before !== undefined && isComparable && mark.completeMs > before.completeMs;
    // The time in the mark counts too: a replica that lags by an hour has a mark that moves. One of the future says nothing.
    const saidMs = isAhead ? nowMs : Math.min(nowMs, mark.completeMs + skewMs);
    const unreadMs = Math.max(0, mark.completeMs - (earliest ?? Infinity));
    if (hasMoved || (heardMs === undefined && !isAhead)) heardMs = saidMs - unreadMs;
    if (hasMoved) waitUntilMs = undefined;
  }

  function reachedEnd(startedMs: number, nowMs: number): void {
    // Also where this read began before the limit: requests have been refused since.
    const isOutageOver = readMs === undefined || nowMs - readMs > maxStalenessMs;
    readMs = startedMs;
    reads++;
    outage.end((fields) => logger.info({ issuer, ...fields }, 'generations can be read again'));
    if (earliest === undefined) earlyReported = false;
    problem = source.mark ? findProblem() : undefined;
    // What changed meanwhile may be pending at the publisher: it appends that before its next mark.
    if (source.mark && isOutageOver) waitUntilMs = nowMs + MARK_WAIT_MS;
    if (!isWaiting(nowMs)) resolveSettled();
  }

  /** What is wrong with a log that could be read. */
  function findProblem(): string | undefined {
    if (!lastMark) return MISSING;
    if (heardMs === undefined) return lastMark.completeMs === 0 ? WRITING : AHEAD;
    if (lastMark.completeMs > (earliest ?? Infinity)) return SLOW;
    if (isKeptLongEnough()) return undefined;
    // Changes that are trimmed earlier than this process needs them would let discarded tokens pass.
    const [kept, needed] = [lastMark.keptMs, floors.lifetimeMs].map((ms) => `${Math.round(ms / 60_000)} min`);
    return `the log keeps changes for ${kept}, this process needs those of ${needed}: raise maxTokenAgeSeconds of the publisher`;
  }

  async function failed(error: unknown): Promise<void> {
    failures++;
    resolveSettled();
    const pauseMs = outage.fail(describeFailure(error), (failure) => {
      logger.warn({ issuer, ...failure, ageMs: age() }, 'generations cannot be read');
    });
    await pause(pauseMs);
  }

  function reportSilence(): void {
    const silentMs = silence() ?? 0;
    if (silentMs < REPORTED_SILENCE_MS === !silenceReported) return;
    silenceReported = !silenceReported;
    if (silenceReported) logger.warn({ issuer, silentMs }, 'the publisher of generations is not heard from');
    else logger.info({ issuer }, 'the publisher of generations is heard from again');
  }

  notify(follow, (error) => logger.error({ issuer, error: errorText(error) }, 'generations are no longer read'));
  return {
    ready,
    settled,
    state,
    status() {
      const [ageMs, silentMs, lastError] = [age(), silence(), outage.lastError ?? problem];
      return {
        ...(ageMs !== undefined && { ageMs }),
        ...(silentMs !== undefined && { silentMs }),
        ...(lastError !== undefined && { lastError }),
        reads,
        failures,
      };
    },
    close() {
      closed = true;
      timer?.cancel();
      reader.close();
      resolveSettled();
    },
  };
}

const MISSING =
  'the log has no mark: it is new or was wiped, and its publisher has not written it yet; ' +
  'where no publisher keeps a mark, set the option "mark" to false (?mark=off in a URL)';

const WRITING = 'the publisher is writing the log anew';

const AHEAD =
  'the mark of the log is ahead of this clock and does not move: the publisher is away, and its clock or this one was wrong';

export const SLOW = 'the log has changes of the future: this clock is slow, or that of the publisher is ahead';

import type { GenerationStatus } from '../core/gate-status';
import { SLOW } from './floors';
import type { Batch, Mark } from './log';

/** Limits of `Freshness`, in ms. `docs/configuration.md` has their defaults. */
export interface FreshnessLimits {
  /** Longest time since the log was read to its end; past it the floors are stale. */
  readonly maxStalenessMs: number;
  /** Longest time since the publisher was heard from; past it the floors are stale too. */
  readonly maxSilenceMs: number;
  /** Tolerance between this clock and the publisher's. */
  readonly skewMs: number;
  /** How long the log must keep changes: as long as floors are needed. */
  readonly lifetimeMs: number;
}

/** What is read of a log at one time. */
export interface ReadBatch extends Omit<Batch, 'changes'> {
  /** When the read began, in ms. */
  readonly startedMs: number;
  /** The earliest generation in the log whose time has not come: from there on the log counts as unread. */
  readonly unreadFrom: number;
}

/** After a start or an outage, how long a mark that moves is waited for: a publisher writes one every second. */
export const MARK_WAIT_MS = 5_000;

/**
 * Whether what was read of one log is recent enough to rely on: when it was read to its end, which mark it had, and when its publisher
 * was last known to be alive. It has no clock and no timer: every time is given, in ms.
 */
export class Freshness {
  readonly #limits: FreshnessLimits;
  /** Whether a publisher keeps a mark. */
  readonly #hasMark: boolean;
  /** When the last read that reached the end of the log began. */
  #readMs: number | undefined;
  /** The mark that was read last. */
  #mark: Mark | undefined;
  /** When the publisher was last known to be alive: the mark moved, and was not older than this. */
  #heardMs: number | undefined;
  /** Until then, a mark that moves is waited for. */
  #waitUntilMs = 0;
  #wasFresh = false;
  /** What was wrong with the log when its end was last reached. */
  problem: string | undefined;

  constructor(limits: FreshnessLimits, hasMark: boolean) {
    this.#limits = limits;
    this.#hasMark = hasMark;
  }

  /** Age of the last complete read, in ms; negative when the clock has stepped back since. */
  ageMs(nowMs: number): number | undefined {
    return this.#readMs === undefined ? undefined : nowMs - this.#readMs;
  }

  /** How long the publisher was not heard from, in ms. */
  silentMs(nowMs: number): number | undefined {
    return this.#heardMs === undefined ? undefined : Math.max(0, nowMs - this.#heardMs);
  }

  state(nowMs: number): Exclude<GenerationStatus['source'], 'none'> {
    if (this.#readMs === undefined) return 'starting';
    if (this.isOutOfDate(nowMs)) return 'stale';
    if (!this.#hasMark) return 'fresh';
    const heardMs = this.#isKeptLongEnough() && !this.isWaiting(nowMs) ? this.#heardMs : undefined;
    if (heardMs === undefined) return this.#wasFresh ? 'stale' : 'starting';
    return nowMs - heardMs > this.#limits.maxSilenceMs ? 'silent' : 'fresh';
  }

  /** Whether the last complete read is too old: also where the clock was set, or the process suspended, since it began. */
  isOutOfDate(nowMs: number): boolean {
    const ageMs = this.#readMs === undefined ? -1 : nowMs - this.#readMs;
    // After the clock stepped back the age is unknown until the next read.
    return ageMs < 0 || ageMs > this.#limits.maxStalenessMs;
  }

  /** Whether a mark that moves is waited for. */
  isWaiting(nowMs: number): boolean {
    const leftMs = this.#waitUntilMs - nowMs;
    // More than the whole after the clock has stepped back.
    return leftMs > 0 && leftMs <= MARK_WAIT_MS;
  }

  /** Notes what was read. Before the end there may be changes that a mark covers. */
  note({ mark, end, startedMs, unreadFrom }: ReadBatch, nowMs: number): void {
    // A clock that stepped back must not lengthen the silence that is tolerated.
    if (this.#heardMs !== undefined) this.#heardMs = Math.min(this.#heardMs, nowMs);
    if (end && mark) this.#noteMark(mark, unreadFrom, nowMs);
    if (end) this.#noteEnd(startedMs, unreadFrom, nowMs);
    if (this.state(nowMs) === 'fresh') this.#wasFresh = true;
  }

  /** A mark moves when its time is later than that of the mark before it; one that went back has to move from there. */
  #noteMark(mark: Mark, unreadFrom: number, nowMs: number): void {
    const { skewMs } = this.#limits;
    const before = this.#mark;
    this.#mark = mark;
    if (mark.completeMs === 0) return;
    const isAhead = mark.completeMs > nowMs + skewMs;
    const isComparable = before?.epoch === mark.epoch || (before?.completeMs !== 0 && !isAhead);
    const hasMoved = before !== undefined && isComparable && mark.completeMs > before.completeMs;
    // The time in the mark counts too: a replica that lags by an hour has a mark that moves. One of the future says nothing.
    const saidMs = isAhead ? nowMs : Math.min(nowMs, mark.completeMs + skewMs);
    const unreadMs = Math.max(0, mark.completeMs - unreadFrom);
    if (hasMoved || (this.#heardMs === undefined && !isAhead)) this.#heardMs = saidMs - unreadMs;
    if (hasMoved) this.#waitUntilMs = 0;
  }

  #noteEnd(startedMs: number, unreadFrom: number, nowMs: number): void {
    // Also where this read began before the limit: requests have been refused since.
    const isOutageOver = this.#readMs === undefined || nowMs - this.#readMs > this.#limits.maxStalenessMs;
    this.#readMs = startedMs;
    this.problem = this.#hasMark ? this.#findProblem(unreadFrom) : undefined;
    // What changed meanwhile may be pending at the publisher: it appends that before its next mark.
    if (this.#hasMark && isOutageOver) this.#waitUntilMs = nowMs + MARK_WAIT_MS;
  }

  #isKeptLongEnough(): boolean {
    return this.#mark === undefined || this.#mark.keptMs >= this.#limits.lifetimeMs;
  }

  /** What is wrong with a log that could be read. */
  #findProblem(unreadFrom: number): string | undefined {
    const mark = this.#mark;
    if (!mark) return MISSING;
    if (this.#heardMs === undefined) return mark.completeMs === 0 ? WRITING : AHEAD;
    if (mark.completeMs > unreadFrom) return SLOW;
    if (this.#isKeptLongEnough()) return undefined;
    // Changes that are trimmed earlier than this process needs them would let discarded tokens pass.
    const [kept, needed] = [mark.keptMs, this.#limits.lifetimeMs].map((ms) => `${Math.round(ms / 60_000)} min`);
    return `the log keeps changes for ${kept}, this process needs those of ${needed}: raise maxTokenAgeSeconds of the publisher`;
  }
}

const MISSING =
  'the log has no mark: it is new or was wiped, and its publisher has not written it yet; ' +
  'where no publisher keeps a mark, set the option "mark" to false (?mark=off in a URL)';

const WRITING = 'the publisher is writing the log anew';

const AHEAD =
  'the mark of the log is ahead of this clock and does not move: the publisher is away, and its clock or this one was wrong';

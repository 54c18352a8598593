import type { Logger } from '../../core/logger';
import { FloorList } from '../floors';
import { Comparison } from './comparison';
import type { FloorSet, Marks } from './floor-set';
import type { RedisSubscription } from './subscription';
import type { GenerationSnapshot, TakePage } from '../source';
import { SourceError } from '../source-error';
import { readWhole } from './whole';

/** Where floors are read from. */
export interface RedisReaderOptions {
  readonly set: FloorSet;
  /** Open subscriptions. */
  readonly subscriptions: ReadonlySet<RedisSubscription>;
  /** The source's clock: strictly increasing. */
  readonly now: () => number;
  /** Longest time until every member has been read again, in ms. */
  readonly wholeEveryMs: number;
  readonly logger: Logger;
}

/** Reads that are remembered, to go on from; each takes some 100 bytes. */
const MAX_READS = 1_000;

/**
 * Makes the `read` of a sorted set. Its scores are generations, which do not tell when they were written. So what moved
 * is known only from a subscription without a gap since `sinceMs`, and from a `Comparison` for writers that forget the
 * PUBLISH. The whole set is read at the start, after a gap, and when the set has lost members.
 */
export function redisReader(
  options: RedisReaderOptions,
): (sinceMs: number, takePage?: TakePage) => Promise<GenerationSnapshot> {
  const { set, subscriptions, now, wholeEveryMs, logger } = options;
  const losses = new LossDetector(set, logger);
  /** By the time of the read. The clock never returns a time twice, so it tells which reader asks. */
  const comparisons = new Map<number, Comparison>();

  return async function read(sinceMs, takePage) {
    const nowMs = now();
    const floors = new FloorList();
    const take = takePage ?? collectIn(floors);
    const marks = (await readMoved(sinceMs, nowMs, take)) ?? (await readAll(nowMs, take));
    const { horizon } = marks;
    // Exactly: what is published after this read is received after it.
    return { floors, nowMs, resumeMs: nowMs, ...(horizon !== undefined && { completeFromMs: horizon }) };
  };

  /** `undefined` if the whole set has to be read. */
  async function readMoved(sinceMs: number, nowMs: number, take: TakePage): Promise<Marks | undefined> {
    const comparison = comparisons.get(sinceMs);
    const subscription = [...subscriptions].find((candidate) => candidate.covers(sinceMs));
    if (!subscription || !comparison || sinceMs < comparison.comparedMs) return undefined;
    const { breaks } = set;
    const received = subscription.receivedSince(sinceMs);
    const receivedMs = now();
    // All in one round trip: what has arrived is usually what was published.
    const caughtUp = subscription.catchUp().catch((error: unknown) => subscription.end(error));
    const reading = set.floorsOf(received, take);
    const recount = losses.recount();
    await Promise.all([caughtUp, reading]);
    // The coverage may have ended or restarted in the meantime.
    if (!subscription.covers(sinceMs)) return undefined;
    const later = subscription.receivedSince(receivedMs);
    const marks = later.length > 0 ? await set.floorsOf(later, take) : await reading;
    if (await losses.found(marks, recount)) return undefined;
    if (comparison.isDue(nowMs)) await comparison.run(nowMs, take);
    // The rest came from another server.
    if (set.breaks !== breaks) return undefined;
    remember(nowMs, comparison);
    return marks;
  }

  async function readAll(nowMs: number, take: TakePage): Promise<Marks> {
    await set.requirePrimary();
    const { breaks } = set;
    // Without a subscription the next read is whole too.
    const comparison = subscriptions.size > 0 ? await Comparison.begin(set, nowMs, wholeEveryMs) : undefined;
    await readWhole(set, take);
    // After the floors: the horizon is written before any are removed.
    const marks = await set.marks();
    await losses.found(marks);
    if (set.breaks !== breaks) throw new SourceError('Redis: the connection broke during the read');
    if (comparison) remember(nowMs, comparison);
    return marks;
  }

  function remember(nowMs: number, comparison: Comparison): void {
    comparisons.set(nowMs, comparison);
    const [oldest] = comparisons.keys();
    if (comparisons.size > MAX_READS && oldest !== undefined) comparisons.delete(oldest);
  }
}

function collectIn(floors: FloorList): TakePage {
  return (page) => {
    for (const floor of page) floors.add(...floor);
    return Promise.resolve();
  };
}

/** Scores that the horizon does not reach soon, and that are counted: 10 minutes ahead of it. */
const AHEAD_MS = 600_000;

/** Members from a score on. */
interface Counted {
  readonly from: number;
  readonly count: number;
}

/** How many of them are left. */
interface Recount extends Counted {
  readonly left: Promise<number>;
}

/**
 * Notices that the set was flushed, restored or failed over. Publishers remove only members below the horizon, so the
 * marks never fall, and the number of members from any score above the horizon on never falls either.
 */
class LossDetector {
  readonly #set: FloorSet;
  readonly #logger: Logger;
  #marks: Marks = { sentinel: undefined, horizon: undefined };
  #counted: Counted | undefined;

  constructor(set: FloorSet, logger: Logger) {
    this.#set = set;
    this.#logger = logger;
  }

  /** Counts again what the previous call has counted; sent before the marks have arrived, it saves a round trip. */
  recount(): Recount | undefined {
    const previous = this.#counted;
    if (!previous) return undefined;
    const left = this.#set.count(previous.from);
    left.catch(() => undefined);
    return { ...previous, left };
  }

  /** Whether members have been lost since the previous call. */
  async found(marks: Marks, previous = this.recount()): Promise<boolean> {
    const { horizon = -Infinity } = marks;
    const isFar = previous !== undefined && previous.from - horizon > AHEAD_MS / 2;
    const from = horizon === -Infinity || !isFar ? horizon + AHEAD_MS : previous.from;
    const left = await previous?.left;
    const count = left !== undefined && previous?.from === from ? left : await this.#set.count(from);
    const fell = isLower(marks.sentinel, this.#marks.sentinel) || isLower(marks.horizon, this.#marks.horizon);
    // Members below the horizon may have been removed.
    const missing = previous && left !== undefined && horizon <= previous.from ? previous.count - left : 0;
    this.#marks = marks;
    this.#counted = { from, count };
    const { key } = this.#set;
    if (missing > 0)
      this.#logger.warn({ key, missing, left }, 'floors are missing from Redis, those known here are kept');
    else if (fell) this.#logger.warn({ key }, 'the set in Redis was flushed or restored, floors known here are kept');
    return missing > 0 || fell;
  }
}

function isLower(mark: number | undefined, before: number | undefined): boolean {
  return before !== undefined && (mark ?? -Infinity) < before;
}

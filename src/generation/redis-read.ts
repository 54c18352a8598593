import type { Logger } from '../core/logger';
import type { RedisCommands } from './redis-commands';
import { countFloors, floorsOf, requirePrimary, scanFloors } from './redis-floors';
import type { RedisHints } from './redis-hints';
import type { Floor, GenerationSnapshot } from './source';

/** Where floors are read from. */
export interface RedisReaderOptions {
  readonly commands: RedisCommands;
  readonly key: string;
  /** Subscriptions that stand. */
  readonly subscriptions: ReadonlySet<RedisHints>;
  /** The source's clock: no two answers are the same. */
  readonly now: () => number;
  /** Longest pause between two reads of the whole set, in ms. */
  readonly wholeEveryMs: number;
  readonly logger: Logger;
}

/**
 * Makes the `read` of a sorted set. Its scores are generations, which say nothing about when they were written: a
 * writer may be late, its clock may be slow, or its numbers no times at all. So what moved is known from one place only,
 * a subscription that has stood without a gap since the time that is asked from; without one the whole set is read.
 * Now and then it is read anyway, for writers that forget the PUBLISH.
 */
export function redisReader(options: RedisReaderOptions): (sinceMs: number) => Promise<GenerationSnapshot> {
  const { commands, key, subscriptions, now, wholeEveryMs, logger } = options;
  let knownCount = 0;

  return async function read(sinceMs) {
    const nowMs = now();
    for (const hints of subscriptions) if (nowMs - hints.coveredSinceMs >= wholeEveryMs) hints.restart(nowMs);
    const floors = (await readMoved(sinceMs, nowMs)) ?? (await readAll());
    // To the ms: what comes after this read is named after it.
    return { floors, nowMs, resumeMs: nowMs };
  };

  /** `undefined` when what moved is not known. */
  async function readMoved(sinceMs: number, nowMs: number): Promise<Iterable<Floor> | undefined> {
    const hints = [...subscriptions].find((candidate) => candidate.covers(sinceMs));
    // A time that has not come yet is of another clock.
    if (!hints || sinceMs > nowMs) return undefined;
    const named = await hints.namedSince(sinceMs).catch((error: unknown) => hints.end(error));
    // The coverage may have ended, or begun anew, while the answer was on its way.
    if (!named || !hints.covers(sinceMs)) return undefined;
    const [floors, shrunk] = await Promise.all([floorsOf(commands, key, named), hasShrunk()]);
    return shrunk ? undefined : floors;
  }

  async function readAll(): Promise<Iterable<Floor>> {
    await requirePrimary(commands);
    await hasShrunk();
    return scanFloors(commands, key);
  }

  /** Floors never leave by themselves: the store was flushed, has failed over to an older copy, or was trimmed. */
  async function hasShrunk(): Promise<boolean> {
    const count = await countFloors(commands, key);
    const missing = knownCount - count;
    knownCount = count;
    if (missing > 0) logger.warn({ key, missing, left: count }, 'floors have gone from Redis, those known here stay');
    return missing > 0;
  }
}

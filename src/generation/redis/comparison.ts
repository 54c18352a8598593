import { PAGE } from './floor-set';
import type { FloorSet } from './floor-set';
import type { TakePage } from '../source';

/** How often a process compares, at most. */
const LONGEST_INTERVAL_MS = 60_000;
/** How far a generation may lie before its ZADD to be found by the next comparison in any case. */
const OVERLAP_MS = 60_000;
/** Ranges of scores that are counted. */
const MAX_RANGES = 256;

/** Members from a score on, up to the next range. */
interface Range {
  readonly from: number;
  readonly count: number;
}

/**
 * Compares one reader's floors with the set, about once a minute, to find floors whose writer forgot the PUBLISH.
 * Messages name all others. Each comparison reads:
 *
 * 1. exactly, every score from a minute before the previous comparison on. A ZADD that came since then, with a
 *    generation at most a minute older than itself, is among them.
 * 2. the number of members in up to 256 ranges of the older scores, some 1,000 members or 1/128 of the set each. Floors
 *    only rise, so a range loses members to higher ones and gains none, except by a ZADD with an old generation: a range
 *    that has more members than before is read exactly. A gain that is not seen was offset within that minute by another
 *    member that left the same range, or raised a member within its range.
 * 3. the next part of the whole set by ZSCAN, so that every member is read again within `wholeEveryMs`, including those.
 *    It is at least 1,000 members: up to that size the whole set is read again each minute.
 *
 * This holds for each range: the members that were counted have been handed over, because they are counted before they
 * are read. It does not depend on the clock: while this one is ahead of the generations, they enter a range and are
 * found there.
 */
export class Comparison {
  readonly #set: FloorSet;
  readonly #intervalMs: number;
  readonly #wholeEveryMs: number;
  /** In ascending order, from the lowest score to `#exactFrom`. */
  #ranges: readonly Range[];
  #exactFrom: number;
  /** Of the ZSCAN that goes on with the next comparison. */
  #cursor = '0';
  /** Time of the last comparison: a reader that has not received its floors has to read the whole set. */
  comparedMs: number;

  /** @param edges - of the ranges, in ascending order; the last one is where the exact part begins */
  private constructor(set: FloorSet, nowMs: number, wholeEveryMs: number, ranges: readonly Range[]) {
    this.#set = set;
    this.#wholeEveryMs = wholeEveryMs;
    this.#intervalMs = Math.min(LONGEST_INTERVAL_MS, wholeEveryMs / 4);
    this.#ranges = ranges;
    this.#exactFrom = overlapOf(nowMs);
    this.comparedMs = nowMs;
  }

  /** Begins with a read of the whole set, which the caller starts after this. */
  static async begin(set: FloorSet, nowMs: number, wholeEveryMs: number): Promise<Comparison> {
    const total = await set.count();
    const parts = Math.min(MAX_RANGES, Math.ceil(total / PAGE));
    const ranks = Array.from({ length: Math.max(0, parts - 1) }, (_, part) => Math.floor(((part + 1) * total) / parts));
    const scores = await Promise.all(ranks.map((rank) => set.scoreAt(rank)));
    const end = overlapOf(nowMs);
    const inner = new Set(scores.filter((score): score is number => score !== undefined && score < end));
    const edges = [-Infinity, ...[...inner].sort((a, b) => a - b), end];
    return new Comparison(set, nowMs, wholeEveryMs, (await countRanges(set, edges)).ranges);
  }

  isDue(nowMs: number): boolean {
    return nowMs - this.comparedMs >= this.#intervalMs;
  }

  /** Hands over every floor that may have moved without a message. */
  async run(nowMs: number, take: TakePage): Promise<void> {
    const set = this.#set;
    const before = this.#ranges;
    const exactFrom = this.#exactFrom;
    const nextExactFrom = Math.max(exactFrom, overlapOf(nowMs));
    const edges = [...before.map(({ from }) => from), exactFrom, nextExactFrom];
    const { ranges, above } = await countRanges(set, edges);

    await set.descend(0, exactFrom, above + (ranges.at(-1)?.count ?? 0), take);
    let rank = above;
    for (let index = ranges.length - 1; index >= 0; index--) {
      const { from, count } = ranges[index] as Range;
      const known = before[index]?.count ?? Infinity;
      if (count > known) await set.descend(rank, from, count, take);
      rank += count;
    }
    const cursor = await this.#scanPart(rank, take);

    this.#cursor = cursor;
    this.#ranges = merge(ranges, rank);
    this.#exactFrom = nextExactFrom;
    this.comparedMs = nowMs;
  }

  /** A member can be visited early in one round and late in the next one, hence two rounds in the time for one. */
  async #scanPart(total: number, take: TakePage): Promise<string> {
    const members = Math.max(PAGE, (total * this.#intervalMs) / (this.#wholeEveryMs / 2));
    let cursor = this.#cursor;
    for (let scanned = 0; scanned < members; scanned += PAGE) {
      const page = await this.#set.scanPage(cursor, PAGE);
      await take(page.floors);
      cursor = page.cursor;
      if (cursor === '0') break;
    }
    return cursor;
  }
}

function overlapOf(nowMs: number): number {
  return Math.floor(nowMs) - OVERLAP_MS;
}

/**
 * Counts the ranges between the edges, and what lies above the last one. From the highest to the lowest: a member that
 * rises meanwhile is counted once at most, so the sum of the counts above a range is never beyond its first rank.
 */
async function countRanges(set: FloorSet, edges: readonly number[]): Promise<{ ranges: Range[]; above: number }> {
  const descending = [Infinity, ...edges.toReversed()];
  const counts = await Promise.all(edges.toReversed().map((from, index) => set.count(from, descending[index])));
  const [above = 0, ...rest] = counts;
  const ranges = rest.map((count, index) => ({ from: descending[index + 2] as number, count })).reverse();
  return { ranges, above };
}

/** Joins neighbours that are small, which keeps the number of ranges below 256. */
function merge(ranges: readonly Range[], total: number): Range[] {
  const limit = Math.max(PAGE, (2 * total) / MAX_RANGES);
  const merged: Range[] = [];
  for (const range of ranges) {
    const last = merged.at(-1);
    if (last && last.count + range.count <= limit) {
      merged[merged.length - 1] = { from: last.from, count: last.count + range.count };
    } else merged.push(range);
  }
  return merged;
}

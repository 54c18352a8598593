import { FloorList } from '../floors';
import { FIRST_TIME_MS } from '../generation';
import type { RedisCommands } from './commands';
import { HORIZON, SENTINEL, isMark, pageOf, requireScore } from './page';
import type { Page } from './page';
import type { TakePage } from '../source';
import { SourceError } from '../source-error';

/** Members per command: about a ms of the server's time and of ours. */
export const PAGE = 1_000;

/** For members that have come in since they were counted. */
const SPARE = 10;

/** Scores of the two members that are not floors; `undefined` if the set has none. */
export interface Marks {
  readonly sentinel: number | undefined;
  readonly horizon: number | undefined;
}

/** Reads the sorted set of one source; every failure is a `SourceError`. */
export class FloorSet {
  readonly #commands: RedisCommands;
  readonly key: string;

  constructor(commands: RedisCommands, key: string) {
    this.#commands = commands;
    this.key = key;
  }

  /** Breaks of the connection so far: a read of several commands is complete only if none came in between. */
  get breaks(): number {
    return this.#commands.breaks;
  }

  /**
   * Refuses a replica: a read of it would count as fresh, however far it lags. Does nothing where ROLE is not permitted.
   */
  async requirePrimary(): Promise<void> {
    const reply = await this.#commands.run('ROLE').catch(() => undefined);
    const [role] = Array.isArray(reply) ? (reply as unknown[]) : [];
    if (String(role) !== 'slave') return;
    throw new SourceError('Redis: this server is a replica; use the URL of the primary');
  }

  /** Counts the members with `from <= score < below`. */
  async count(from = -Infinity, below = Infinity): Promise<number> {
    const upTo = below === Infinity ? '+inf' : `(${below}`;
    const reply = await this.#commands.run('ZCOUNT', this.key, bound(from), upTo);
    const count = Number(reply);
    if (!Number.isSafeInteger(count)) throw new SourceError('Redis: ZCOUNT: the reply is not a number');
    return count;
  }

  async marks(): Promise<Marks> {
    return this.floorsOf([], () => Promise.resolve());
  }

  /** Hands over the floors of some clients, and returns the marks as of the last of them. */
  async floorsOf(clientIds: readonly string[], take: TakePage): Promise<Marks> {
    const members = [...clientIds, SENTINEL, HORIZON];
    const marks = new Map<string, number>();
    for (let at = 0; at < members.length; at += PAGE) {
      const some = members.slice(at, at + PAGE);
      const scores = await this.#commands.run('ZMSCORE', this.key, ...some);
      if (!Array.isArray(scores) || scores.length !== some.length) {
        throw new SourceError('Redis: ZMSCORE: the reply has another number of scores than requested');
      }
      const floors = new FloorList();
      some.forEach((member, index) => {
        const score: unknown = scores[index];
        if (score === null) return;
        if (isMark(member)) marks.set(member, requireScore(score));
        else floors.add(member, requireScore(score));
      });
      if (floors.length > 0) await take(floors);
    }
    return { sentinel: marks.get(SENTINEL), horizon: marks.get(HORIZON) };
  }

  async scanPage(from: string, count: number): Promise<Page & { readonly cursor: string }> {
    const reply = await this.#commands.run('ZSCAN', this.key, from, 'COUNT', String(count));
    const [cursor, members] = Array.isArray(reply) ? (reply as unknown[]) : [];
    if (!Array.isArray(members)) throw new SourceError('Redis: ZSCAN: the reply is not a page');
    return { cursor: String(cursor), ...pageOf(members) };
  }

  /** The score at a rank, counted from the highest one or from the lowest; `undefined` beyond the last. */
  async scoreAt(rank: number, order: 'descending' | 'ascending' = 'descending'): Promise<number | undefined> {
    const at = String(rank);
    const { size, lastScore } = await this.#range(at, at, ...(order === 'descending' ? ['REV'] : []), 'WITHSCORES');
    return size === 0 ? undefined : lastScore;
  }

  /** The lowest members with `from <= score < below`, in ascending order. */
  async window(from: number, below: number, limit: number): Promise<Page> {
    return this.#range(bound(from), `(${bound(below)}`, 'BYSCORE', 'LIMIT', '0', String(limit), 'WITHSCORES');
  }

  /**
   * Hands over the members from a rank on, in descending order, down to a score. Floors only rise and the oldest are
   * removed first, so the rank of a member that is still to come never falls: none is skipped.
   *
   * @param expected - how many there were a moment ago
   */
  async descend(fromRank: number, downTo: number, expected: number, take: TakePage): Promise<void> {
    let rank = fromRank;
    for (;;) {
      const left = Math.max(0, fromRank + expected - rank);
      const length = Math.min(PAGE, left + SPARE);
      const { floors, size, lastScore } = await this.#rankPage(rank, length);
      if (floors.length > 0) await take(floors);
      if (size < length || lastScore < downTo) return;
      rank += length;
    }
  }

  /** The score of the `nth` oldest floor that is a time and lies below another; `undefined` if there are fewer. */
  async oldestBelow(below: number, nth: number): Promise<number | undefined> {
    // One more, as the horizon is among them.
    const range = [String(FIRST_TIME_MS), `(${below}`, 'BYSCORE', 'LIMIT', String(nth - 1), '2', 'WITHSCORES'];
    const [floor] = (await this.#range(...range)).floors;
    return floor?.[1];
  }

  async #rankPage(rank: number, length: number): Promise<Page> {
    const [first, last] = [rank, rank + length - 1].map(String) as [string, string];
    return this.#range(first, last, 'REV', 'WITHSCORES');
  }

  async #range(...args: readonly string[]): Promise<Page> {
    const reply = await this.#commands.run('ZRANGE', this.key, ...args);
    if (!Array.isArray(reply)) throw new SourceError('Redis: ZRANGE: the reply is not a page');
    return pageOf(reply);
  }
}

/** A score as the bound of a range. */
function bound(score: number): string {
  return Number.isFinite(score) ? String(score) : score < 0 ? '-inf' : '+inf';
}

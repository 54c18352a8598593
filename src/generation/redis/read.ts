import type { Logger } from '../../core/logger';
import { FloorList } from '../floor-list';
import { isGeneration } from '../generation';
import type { RedisCommands } from './commands';
import type { RedisHints } from './hints';
import type { Floor, GenerationSnapshot } from '../source';
import { SourceError } from '../source-error';

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
    // The coverage may have ended, or begun anew, while the response was on its way.
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

/** Members per command: some 5 ms of the server's time and of ours. */
const PAGE = 5_000;
const ARGUMENTS = 1_000;

/**
 * Refuses a replica: a read of it would count as fresh, however far it lags behind. Where ROLE is not permitted, the
 * server is taken at its word.
 *
 * @throws SourceError
 */
export async function requirePrimary(commands: RedisCommands): Promise<void> {
  const answer = await commands.run('ROLE').catch(() => undefined);
  const [role] = Array.isArray(answer) ? (answer as unknown[]) : [];
  if (String(role) !== 'slave') return;
  throw new SourceError('Redis: this server is a replica; use the address of the primary');
}

/** The sentinel is the member without a name: no client id is empty, and whoever loses the set loses it too. */
export const SENTINEL = '';

/** Reads the sentinel. @throws SourceError */
export async function readSentinel(commands: RedisCommands, key: string): Promise<number | undefined> {
  const answer = await commands.run('ZMSCORE', key, SENTINEL);
  const [score] = Array.isArray(answer) ? (answer as unknown[]) : [];
  if (score === null || score === undefined) return undefined;
  return requireScore(score);
}

/** How many floors there are. @throws SourceError */
export async function countFloors(commands: RedisCommands, key: string): Promise<number> {
  const count = Number(await commands.run('ZCARD', key));
  if (!Number.isSafeInteger(count)) throw new SourceError('Redis: ZCARD: answered no number');
  return count;
}

/**
 * Reads the whole set, page by page. ZSCAN answers every member that is there from its start to its end, however the
 * set changes meanwhile; its cursor means nothing to another server, so a broken connection fails the read.
 *
 * @throws SourceError
 */
export async function scanFloors(commands: RedisCommands, key: string): Promise<FloorList> {
  const { breaks } = commands;
  const floors = new FloorList();
  let cursor = '0';
  do {
    const answer = await commands.run('ZSCAN', key, cursor, 'COUNT', String(PAGE));
    const [next, members] = Array.isArray(answer) ? (answer as unknown[]) : [];
    if (!Array.isArray(members)) throw new SourceError('Redis: ZSCAN: answered no page');
    for (let at = 0; at < members.length; at += 2) addFloor(floors, members[at], members[at + 1]);
    cursor = String(next);
  } while (cursor !== '0');
  if (commands.breaks !== breaks) throw new SourceError('Redis: the connection broke during the read');
  return floors;
}

/** Reads the floors of some clients; those that have none are left out. @throws SourceError */
export async function floorsOf(commands: RedisCommands, key: string, clientIds: readonly string[]): Promise<FloorList> {
  const floors = new FloorList();
  for (let at = 0; at < clientIds.length; at += ARGUMENTS) {
    const some = clientIds.slice(at, at + ARGUMENTS);
    const scores = await commands.run('ZMSCORE', key, ...some);
    if (!Array.isArray(scores) || scores.length !== some.length) {
      throw new SourceError('Redis: ZMSCORE: answered another number of scores than asked for');
    }
    some.forEach((clientId, index) => {
      const score: unknown = scores[index];
      if (score !== null) addFloor(floors, clientId, score);
    });
  }
  return floors;
}

function addFloor(floors: FloorList, clientId: unknown, score: unknown): void {
  const generation = requireScore(score);
  if (clientId !== SENTINEL) floors.add(String(clientId), generation);
}

function requireScore(score: unknown): number {
  const generation = Number(score);
  if (!isGeneration(generation)) throw new SourceError('Redis: the set has a member whose score is no generation');
  return generation;
}

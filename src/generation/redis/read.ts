import type { Logger } from '../../core/logger';
import { FloorList } from '../floors';
import { isGeneration } from '../generation';
import type { RedisCommands } from './commands';
import type { RedisSubscription } from './subscription';
import type { Floor, GenerationSnapshot } from '../source';
import { SourceError } from '../source-error';

/** Where floors are read from. */
export interface RedisReaderOptions {
  readonly commands: RedisCommands;
  readonly key: string;
  /** Open subscriptions. */
  readonly subscriptions: ReadonlySet<RedisSubscription>;
  /** The source's clock: strictly increasing. */
  readonly now: () => number;
  /** Longest pause between two reads of the whole set, in ms. */
  readonly wholeEveryMs: number;
  readonly logger: Logger;
}

/**
 * Makes the `read` of a sorted set. Its scores are generations, which do not tell when they were written. So what moved
 * is known only from a subscription without a gap since `sinceMs`; otherwise the whole set is read. Every `wholeEveryMs`
 * it is read anyway, for writers that forget the PUBLISH.
 */
export function redisReader(options: RedisReaderOptions): (sinceMs: number) => Promise<GenerationSnapshot> {
  const { commands, key, subscriptions, now, wholeEveryMs, logger } = options;
  let knownCount = 0;

  return async function read(sinceMs) {
    const nowMs = now();
    for (const one of subscriptions) if (nowMs - one.coveredSinceMs >= wholeEveryMs) one.restart(nowMs);
    const floors = (await readMoved(sinceMs, nowMs)) ?? (await readAll());
    // Exactly: what is published after this read is received after it.
    return { floors, nowMs, resumeMs: nowMs };
  };

  /** `undefined` if no subscription covers `sinceMs`. */
  async function readMoved(sinceMs: number, nowMs: number): Promise<Iterable<Floor> | undefined> {
    const subscription = [...subscriptions].find((candidate) => candidate.covers(sinceMs));
    // A time in the future comes from another clock.
    if (!subscription || sinceMs > nowMs) return undefined;
    const changed = await subscription.changedSince(sinceMs).catch((error: unknown) => subscription.end(error));
    // The coverage may have ended or restarted in the meantime.
    if (!changed || !subscription.covers(sinceMs)) return undefined;
    const [floors, shrunk] = await Promise.all([floorsOf(commands, key, changed), hasShrunk()]);
    return shrunk ? undefined : floors;
  }

  async function readAll(): Promise<Iterable<Floor>> {
    await requirePrimary(commands);
    await hasShrunk();
    return scanFloors(commands, key);
  }

  /** Tillgate removes no member: fewer of them means that the set was flushed, restored, failed over or trimmed. */
  async function hasShrunk(): Promise<boolean> {
    const count = await countFloors(commands, key);
    const missing = knownCount - count;
    knownCount = count;
    if (missing > 0)
      logger.warn({ key, missing, left: count }, 'floors are missing from Redis, those known here are kept');
    return missing > 0;
  }
}

/** Members per command: some 5 ms of the server's time and of ours. */
const PAGE = 5_000;
const ARGUMENTS = 1_000;

/**
 * Refuses a replica: a read of it would count as fresh, however far it lags. Does nothing where ROLE is not permitted.
 *
 * @throws SourceError
 */
export async function requirePrimary(commands: RedisCommands): Promise<void> {
  const reply = await commands.run('ROLE').catch(() => undefined);
  const [role] = Array.isArray(reply) ? (reply as unknown[]) : [];
  if (String(role) !== 'slave') return;
  throw new SourceError('Redis: this server is a replica; use the URL of the primary');
}

/** Member of the sentinel: no client id is empty, and it is lost together with the set. */
export const SENTINEL = '';

/** Reads the sentinel. @throws SourceError */
export async function readSentinel(commands: RedisCommands, key: string): Promise<number | undefined> {
  const reply = await commands.run('ZMSCORE', key, SENTINEL);
  const [score] = Array.isArray(reply) ? (reply as unknown[]) : [];
  if (score === null || score === undefined) return undefined;
  return requireScore(score);
}

/** @throws SourceError */
export async function countFloors(commands: RedisCommands, key: string): Promise<number> {
  const count = Number(await commands.run('ZCARD', key));
  if (!Number.isSafeInteger(count)) throw new SourceError('Redis: ZCARD: the reply is not a number');
  return count;
}

/**
 * Reads the whole set, page by page. ZSCAN returns every member that is in the set from its start to its end; its
 * cursor is not valid on another server, so a broken connection fails the read.
 *
 * @throws SourceError
 */
export async function scanFloors(commands: RedisCommands, key: string): Promise<FloorList> {
  const { breaks } = commands;
  const floors = new FloorList();
  let cursor = '0';
  do {
    const reply = await commands.run('ZSCAN', key, cursor, 'COUNT', String(PAGE));
    const [next, members] = Array.isArray(reply) ? (reply as unknown[]) : [];
    if (!Array.isArray(members)) throw new SourceError('Redis: ZSCAN: the reply is not a page');
    for (let at = 0; at < members.length; at += 2) addFloor(floors, members[at], members[at + 1]);
    cursor = String(next);
  } while (cursor !== '0');
  if (commands.breaks !== breaks) throw new SourceError('Redis: the connection broke during the read');
  return floors;
}

/** Reads the floors of some clients; clients without one are omitted. @throws SourceError */
export async function floorsOf(commands: RedisCommands, key: string, clientIds: readonly string[]): Promise<FloorList> {
  const floors = new FloorList();
  for (let at = 0; at < clientIds.length; at += ARGUMENTS) {
    const some = clientIds.slice(at, at + ARGUMENTS);
    const scores = await commands.run('ZMSCORE', key, ...some);
    if (!Array.isArray(scores) || scores.length !== some.length) {
      throw new SourceError('Redis: ZMSCORE: the reply has another number of scores than requested');
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
  if (!isGeneration(generation)) throw new SourceError('Redis: the set has a member whose score is not a generation');
  return generation;
}

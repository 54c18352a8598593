import { FloorList } from './floor-list';
import { isGeneration } from './generation';
import type { RedisCommands } from './redis-commands';
import { SourceError } from './source-error';

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

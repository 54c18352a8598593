import { hash } from 'node:crypto';
import { withTimeLimit } from '../core/clock';
import type { Clock } from '../core/clock';
import { AuthError } from '../core/errors';
import { silentLogger } from '../core/logger';
import type { Logger } from '../core/logger';
import { dependencies, describe, option, readOptions } from '../core/options';
import type { Dependencies } from '../core/options';
import type { GateStatus } from '../core/status';
import { redisConnection } from '../generation/redis/connection';
import type { RedisClient } from '../generation/redis/connection';

/** Remembers the proofs that were used, so that none is accepted twice (RFC 9449 section 11.1). */
export interface ReplayStore {
  /**
   * Remembers a proof.
   *
   * @param id - names the proof: the hash of its key and its `jti`
   * @param untilMs - first moment, in ms since the epoch, at which no process of the API accepts the proof any more,
   *   even if the store has forgotten it: differences between their clocks are included
   * @param client - names issuer and client of the token, so that no client uses up the room of others, however many keys
   *   it has
   * @returns whether it is new. Rejects, or throws, when that cannot be known: the request gets 503; with an `AuthError`
   *   of the reason `too_many_proofs` when the client has used its share: 429.
   */
  remember(id: string, untilMs: number, client: string): boolean | Promise<boolean>;
}

/** What one process remembers at most: some 50 MB. */
const MAX_PROOFS = 500_000;

/** Of a store that is half full: 64 clients that hold all they may leave room for a 65th. */
const SHARES = 128;
const REMIND_EVERY_MS = 60_000;
const HALF_FULL =
  'the replay store in memory is half full: a client that holds 1/128 of it gets 429 until proofs end; redisReplayStore() has room for each client';

/** A store whose state is part of that of its gate. */
export interface MemoryReplayStore extends ReplayStore {
  status(): NonNullable<GateStatus['usedProofs']>;
}

/**
 * Makes a store in memory, for an API that is one process. A full store refuses new proofs rather than forgetting old
 * ones, which could then be used again. While it is less than half full, any client may add a proof: one alone fills half of it.
 * From then on a client adds only while it holds less than 1/128 of the store, so 64 clients that send all they may leave room
 * for a 65th. A proof is kept for 90 s by default: that is 2,777 requests per second of one client alone, and 43 per second of
 * each client where the store is half full.
 */
export function memoryReplayStore(
  clock: Clock,
  maxProofs = MAX_PROOFS,
  logger: Logger = silentLogger,
): MemoryReplayStore {
  const share = Math.max(1, Math.floor(maxProofs / SHARES));
  const held = new Map<string, number>();
  let warnedMs = -Infinity;
  /** In the order of their use, which is nearly that of their end. */
  const proofs = new Map<string, { readonly untilMs: number; readonly client: string }>();
  /** Proofs up to this end may have been forgotten: after a clock stepped back they are not known to be new. */
  let forgottenUntilMs = -Infinity;

  function forgetEnded(): void {
    const nowMs = clock();
    for (const [id, { untilMs, client }] of proofs) {
      if (untilMs > nowMs) return;
      proofs.delete(id);
      hold(client, -1);
      forgottenUntilMs = Math.max(forgottenUntilMs, untilMs);
    }
  }

  function hold(client: string, count: number): void {
    const left = (held.get(client) ?? 0) + count;
    if (left > 0) held.set(client, left);
    else held.delete(client);
  }

  const isHalfFull = (): boolean => proofs.size >= maxProofs / 2;

  function hasRoom(client: string): boolean {
    return !isHalfFull() || (proofs.size < maxProofs && (held.get(client) ?? 0) < share);
  }

  function warn(): void {
    // A clock that has stepped back warns again.
    if (!isHalfFull() || Math.abs(clock() - warnedMs) < REMIND_EVERY_MS) return;
    warnedMs = clock();
    logger.warn({ proofs: proofs.size, maxProofs }, HALF_FULL);
  }

  return {
    remember(id, untilMs, client) {
      forgetEnded();
      if (untilMs <= forgottenUntilMs || proofs.has(id)) return false;
      if (!hasRoom(client)) throw new AuthError('too_many_proofs');
      hold(client, 1);
      proofs.set(id, { untilMs, client });
      warn();
      return true;
    },
    status() {
      forgetEnded();
      return { proofs: proofs.size, maxProofs, ...(isHalfFull() && { warning: HALF_FULL }) };
    },
  };
}

/** How much longer than needed Redis keeps the proofs of a client: the command itself takes some of the time. */
const MARGIN_MS = 1_000;
/** At 90 s for each proof, more than 1,000 requests per second of one client; some 10 MB of Redis. */
const MAX_PROOFS_OF_CLIENT = 100_000;

/**
 * Remembers one proof of a client. The proofs of a client are one sorted set, by their end: a single atomic command counts them
 * exactly, and forgets those that have ended. A counter next to one key per proof would have to guess when proofs end.
 * Replies 1 when the proof is new, 0 when it is known, -1 when the client has used its share. The first write is ZADD: a
 * Redis without memory refuses it, but nothing that a script does after another write.
 *
 * KEYS: the set. ARGV: the proof, its end, the time of the caller, share, margin.
 */
const REMEMBER = `
local ended = ARGV[3] - ARGV[5]
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
if redis.call('ZCOUNT', KEYS[1], '(' .. string.format('%.3f', ended), '+inf') >= tonumber(ARGV[4]) then return -1 end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ended)
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
redis.call('PEXPIRE', KEYS[1], math.max(1, math.ceil(last - ARGV[3])) + ARGV[5])
return 1`;

/**
 * Makes a store in Redis, for an API of several processes. Redis drops a proof when it is too old to be accepted. One
 * client holds a bounded number of proofs, however many keys it has, so that none fills the memory of Redis. Use a Redis that evicts nothing
 * (`maxmemory-policy noeviction`): a full one then refuses new proofs, and their requests get 503.
 *
 * @param options.client - a connected client of ioredis or node-redis; it stays yours to close
 * @throws TypeError when an option is wrong
 *
 * @example
 * ```ts
 * import { authenticate } from 'tillgate';
 * import { dpop, redisReplayStore } from 'tillgate/possession';
 * import { createClient } from 'redis';
 *
 * const client = await createClient({ url: 'redis://127.0.0.1:6379' }).connect();
 * const gate = authenticate({
 *   issuer: 'https://login.example.com',
 *   audience: 'https://api.example.com',
 *   possession: [dpop({ baseUrl: 'https://api.example.com', replayStore: redisReplayStore({ client }) })],
 * });
 * ```
 */
export function redisReplayStore(
  options: {
    readonly client: RedisClient;
    /** Begins every key; processes of one API share it. Default `tillgate:dpop:`. */
    readonly prefix?: string | undefined;
    /** Number of proofs that are remembered for one client, at most. Default 100000. */
    readonly maxProofsPerClient?: number | undefined;
    /** Longest time in ms for one command. Default 1000. */
    readonly timeoutMs?: number | undefined;
  } & Pick<Dependencies, 'clock' | 'schedule'>,
): ReplayStore {
  const table = {
    prefix: option.string('tillgate:dpop:'),
    maxProofsPerClient: option.number({ unit: 'proofs', min: 1, integer: true }, MAX_PROOFS_OF_CLIENT),
    timeoutMs: option.number({ unit: 'milliseconds', min: 1, max: 60_000 }, 1_000),
    ...dependencies('clock', 'schedule'),
  };
  const given = readOptions('redisReplayStore', options, table, { alsoKnown: ['client'] });
  const { prefix, maxProofsPerClient, timeoutMs, clock, schedule } = given;
  const connection = redisConnection(options.client, 'redisReplayStore');
  return {
    async remember(id, untilMs, client) {
      const args = [id, untilMs, clock(), maxProofsPerClient, MARGIN_MS].map(String);
      // Hashed, because a client id can be of any length.
      const set = prefix + hash('sha256', client, 'base64url');
      const sent = connection.send(['EVAL', REMEMBER, '1', set, ...args], set);
      const noReply = (): Error => new Error(`Redis did not respond within ${timeoutMs} ms`);
      const reply = await withTimeLimit(sent, timeoutMs, schedule, noReply);
      if (reply === -1) throw new AuthError('too_many_proofs');
      if (reply !== 1 && reply !== 0) throw new Error(`Redis replied ${describe(reply)} instead of 1, 0 or -1`);
      return reply === 1;
    },
  };
}

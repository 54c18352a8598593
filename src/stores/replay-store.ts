import { hash } from 'node:crypto';
import { AuthError, type Dependencies } from 'tillgate';
import { dependencies, describe, option, readOptions, withTimeLimit } from 'tillgate/internal';
import type { ReplayStore } from 'tillgate/possession';
import { redisConnection, type RedisClient } from './redis/connection';

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
 * import { redisReplayStore } from '@tillgate/stores';
 * import { dpop } from 'tillgate/possession';
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

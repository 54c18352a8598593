import { systemClock, systemSchedule, withTimeLimit } from '../core/clock';
import type { Dependencies } from '../core/dependencies';
import { describe, readOptions } from '../core/options';
import { redisConnection } from '../generation/redis/connection';
import type { RedisClient } from '../generation/redis/connection';
import type { ReplayStore } from '../token/possession/replay-store';

/** How much longer than needed Redis remembers a proof, because its clock and ours can differ. */
const MARGIN_MS = 1_000;

/**
 * Makes a store in Redis, for an API of several processes: each proof is a key that Redis drops when the proof is too old
 * to be accepted. Use a Redis that evicts nothing (`maxmemory-policy noeviction`): a full one then refuses new proofs,
 * and their requests get 503.
 *
 * @param options.client - a connected client of ioredis or node-redis; it stays yours to close
 * @throws TypeError when an option is wrong
 *
 * @example
 * ```ts
 * import { authenticate } from 'tillgate';
 * import { redisReplayStore } from 'tillgate/dpop';
 * import { createClient } from 'redis';
 *
 * const client = await createClient({ url: 'redis://127.0.0.1:6379' }).connect();
 * const gate = authenticate({
 *   issuer: 'https://login.example.com',
 *   audience: 'https://api.example.com',
 *   dpop: { baseUrl: 'https://api.example.com', replayStore: redisReplayStore({ client }) },
 * });
 * ```
 */
export function redisReplayStore(
  options: {
    readonly client: RedisClient;
    /** Begins every key; processes of one API share it. Default `tillgate:dpop:`. */
    readonly prefix?: string | undefined;
    /** Longest time in ms for one command. Default 1000. */
    readonly timeoutMs?: number | undefined;
  } & Pick<Dependencies, 'clock' | 'schedule'>,
): ReplayStore {
  const read = readOptions('redisReplayStore', options, ['client', 'prefix', 'timeoutMs', 'clock', 'schedule']);
  const prefix = read.string('prefix') ?? 'tillgate:dpop:';
  const timeoutMs = read.number('timeoutMs', 1_000, { unit: 'milliseconds', min: 1, max: 60_000 });
  const clock = read.callable('clock', options.clock ?? systemClock);
  const schedule = read.callable('schedule', options.schedule ?? systemSchedule);
  const connection = redisConnection(options.client, 'redisReplayStore');
  return {
    async remember(id, untilMs) {
      const keepMs = Math.max(1, Math.ceil(untilMs - clock())) + MARGIN_MS;
      const sent = connection.send(['SET', prefix + id, '1', 'PX', String(keepMs), 'NX']);
      const reply = await withTimeLimit(sent, timeoutMs, schedule, noReply);
      if (reply !== 'OK' && reply !== null) throw new Error(`Redis replied ${describe(reply)} instead of OK or nil`);
      return reply === 'OK';
    },
  };
}

function noReply(limitMs: number): Error {
  return new Error(`Redis did not respond within ${limitMs} ms`);
}

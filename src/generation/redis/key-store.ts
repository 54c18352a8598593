import type { KeyStore } from '../../token/keys/key-store';
import { DAY_MS } from '../../token/keys/key-store';
import { redisConnection } from './connection';
import type { RedisClient, RedisConnection } from './connection';

/**
 * Replaces a record by a later one, in one step, because another process may write at the same moment; also one that is
 * later by more than a day, which a wrong clock has written. KEYS: the record. ARGV: its time, its text, a day, how long
 * it is kept.
 */
const WRITE = `
local kept = tonumber(redis.call('HGET', KEYS[1], 'at') or '-1')
if kept > tonumber(ARGV[1]) and kept <= ARGV[1] + ARGV[3] then return 0 end
redis.call('HSET', KEYS[1], 'at', ARGV[1], 'record', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1`;

/** Longer than any key set is used. */
const KEPT_MS = 30 * DAY_MS;

/**
 * Keeps key sets in Redis, for the option `keyStore` of `authenticate()`: a process that starts elsewhere while the issuer
 * is down finds them there. Whoever may write to the key `<prefix><issuer>` decides which tokens are good.
 *
 * @param options.client - a connected client of ioredis or node-redis; it stays yours to close
 * @param options.prefix - begins every key. Default `tillgate:keys:`
 * @throws TypeError when the client is neither
 *
 * @example
 * ```ts
 * import { authenticate } from 'tillgate';
 * import { redisKeyStore } from 'tillgate/generations';
 * import { Redis } from 'ioredis';
 *
 * const gate = authenticate({
 *   issuer: 'https://login.example.com',
 *   audience: 'https://api.example.com',
 *   keyStore: redisKeyStore({ client: new Redis('rediss://redis.example.com') }),
 * });
 * ```
 */
export function redisKeyStore(options: {
  readonly client: RedisClient;
  readonly prefix?: string | undefined;
}): KeyStore {
  return keyStoreOn(redisConnection(options.client, 'redisKeyStore'), options.prefix);
}

/** The store on a connection that is open already. */
export function keyStoreOn(connection: RedisConnection, prefix = 'tillgate:keys:'): KeyStore {
  return {
    async read(issuer) {
      const record = await connection.send(['HGET', prefix + issuer, 'record']);
      return typeof record === 'string' ? record : undefined;
    },
    async write(issuer, record, fetchedAtMs) {
      const args = [String(fetchedAtMs), record, String(DAY_MS), String(KEPT_MS)];
      const key = prefix + issuer;
      await connection.send(['EVAL', WRITE, '1', key, ...args], key);
    },
  };
}

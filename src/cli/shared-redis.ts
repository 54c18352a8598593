import { loadPackage } from '../generation/source-url';
import { connectToRedis } from '../generation/redis/connection';
import type { RedisConnection } from '../generation/redis/connection';
import type { Settings } from '../settings/settings';

/** For `sharedRedis()`: where requests are counted. */
export const RATE_LIMITS = { name: 'tillgate-limits', needs: 'rate limits in Redis need' };

/** Commands that wait for a connection, at most. */
const MAX_WAITING = 1_000;

/**
 * How the API connects to the Redis of its generations for something else: `undefined` unless they are in one.
 *
 * @param needs - start of the message if no client is installed
 */
export function sharedRedis(
  { generationSource: url }: Pick<Settings, 'generationSource'>,
  { name, needs }: { readonly name: string; readonly needs: string },
  load = loadPackage,
): (() => RedisConnection) | undefined {
  if (url === undefined || !/^rediss?:/i.test(url)) return undefined;
  return () =>
    connectToRedis(url, {
      name,
      needs,
      load,
      ioredis: {
        // Queued commands fail with the first attempt: the requests they belong to no longer wait.
        maxRetriesPerRequest: 0,
        // Asks for INFO, which a user for limits alone need not have.
        enableReadyCheck: false,
        // Else it holds the process up for 2 s where the connection is lost already.
        disconnectTimeout: 0,
      },
      nodeRedis: { commandsQueueMaxLength: MAX_WAITING },
    });
}

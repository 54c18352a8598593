import { systemClock, systemSchedule } from '../core/clock';
import type { Clock, Schedule } from '../core/clock';
import { consoleLogger } from '../core/logger';
import type { Logger } from '../core/logger';
import { loadPackage } from './optional-package';
import type { Load } from './optional-package';
import { DEFAULT_KEY, TIMEOUT_MS, WHOLE_EVERY_MS } from './redis';
import { connectToRedis } from './redis-connect';
import { readSentinelParameter } from './sentinel-parameter';
import { redisSource } from './redis-source';
import type { GenerationSource } from './source';

/** What a source that is made from an address may be given. */
export interface RedisUrlDependencies {
  readonly clock?: Clock | undefined;
  readonly schedule?: Schedule | undefined;
  readonly logger?: Logger | undefined;
  /** Loads a package by its name. Default: Node's `require`. */
  readonly load?: Load | undefined;
}

/**
 * Makes the source for a `redis://` or, with TLS, `rediss://` address: `rediss://user:password@host:6379/0?key=name`,
 * where `key` names the sorted set and `sentinel=off` does
 * without a sentinel. ioredis makes the connection, or redis (node-redis), whichever is installed.
 *
 * @throws TypeError when the address is wrong or neither is installed; the message does not repeat the address.
 */
export function redisFromUrl(url: string, dependencies: RedisUrlDependencies): GenerationSource {
  const { key, sentinel } = readAddress(url);
  const { clock, schedule, logger, load = loadPackage } = dependencies;
  return redisSource({
    connection: connectToRedis(url, { name: 'tillgate', needs: 'generations: a redis: address needs', load }),
    owned: true,
    key: key ?? DEFAULT_KEY,
    timeoutMs: TIMEOUT_MS,
    wholeEveryMs: WHOLE_EVERY_MS,
    sentinel,
    clock: clock ?? systemClock,
    schedule: schedule ?? systemSchedule,
    logger: logger ?? consoleLogger,
  });
}

function readAddress(url: string): { key: string | undefined; sentinel: boolean } {
  // Node's error repeats its input, and with it the password.
  if (!URL.canParse(url)) throw new TypeError('generations: the redis: URL is not valid');
  const { searchParams } = new URL(url);
  return { key: searchParams.get('key') || undefined, sentinel: readSentinelParameter(searchParams) };
}

import { createRequire } from 'node:module';
import { generationsFromUrl } from '../../../src/generation/from-url';
import { sourceFromUrl as redisFromUrl } from '../../../src/generation/redis/source';
import { recordingLogger } from '../../support/log';
import { eventually } from '../support/eventually';
import { startRedis } from '../support/redis-server';
import type { RedisServer } from '../support/redis-server';
import { byIoredis, byNodeRedis, openSource } from './fixtures';

const KEY = 'shop:floors';
const logger = recordingLogger();
const installed = createRequire(__filename);

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
  const connecting = ['+client', '+hello', '+info', '+ping', '+select'];
  const reading = ['+zscan', '+zrange', '+zcount', '+zmscore', '+subscribe', '+unsubscribe'];
  await acl('reader', `~${KEY}`, `&${KEY}`, ...connecting, ...reading);
  await acl('writer', `~${KEY}`, `&${KEY}`, ...connecting, '+zadd', '+publish');
  const trimming = ['+zrange', '+zmscore', '+zremrangebyscore'];
  await acl('trimmer', `~${KEY}`, `&${KEY}`, ...connecting, '+zadd', '+publish', ...trimming);
});

afterAll(() => redis.stop());

function acl(user: string, ...rules: string[]): Promise<unknown> {
  return redis.command('ACL', 'SETUSER', user, 'reset', 'on', '>s3cr%et', 'resetchannels', ...rules);
}

const urlOf = (user: string, password = 's3cr%25et'): string =>
  `redis://${user}:${password}@127.0.0.1:${redis.port}/0?key=${encodeURIComponent(KEY)}`;

describe.each([
  ['ioredis', (name: string): unknown => installed(name)],
  [
    'redis',
    (name: string): unknown => {
      if (name === 'redis') return installed(name);
      throw Object.assign(new Error('not there'), { code: 'MODULE_NOT_FOUND' });
    },
  ],
])('a redis: address with credentials, by %s', (_, load) => {
  it('reads and publishes with no more permissions than are named', async () => {
    let aheadMs = 0;
    const clock = (): number => Date.now() + aheadMs;
    const reader = redisFromUrl(urlOf('reader'), { load, logger, clock });
    const writer = redisFromUrl(urlOf('writer'), { load, logger });
    const wake = jest.fn();
    await reader.watch?.(wake);
    const { nowMs } = await reader.read(0);
    await writer.publish?.('pos', 5);
    expect([...(await reader.read(nowMs)).floors]).toEqual([['pos', 5]]);
    expect(wake).toHaveBeenCalledTimes(1);
    aheadMs = 120_000;
    const compared = await reader.read(nowMs);
    expect([...compared.floors].length).toBeGreaterThan(1);
    await expect(reader.publish?.('pos', 6)).rejects.toThrow(/^Redis: ZADD: the user lacks a permission/);
    await expect(writer.read(0)).rejects.toThrow(/the user lacks a permission/);
    await reader.close?.();
    await writer.close?.();
    await redis.command('DEL', KEY);
  });

  it('removes old floors with no more permissions than are named, and publishes without those', async () => {
    const log = recordingLogger();
    await redis.command('ZADD', KEY, '1600000000000', 'old');
    for (const [user, left] of [
      ['writer', 2],
      ['trimmer', 2],
    ] as const) {
      const source = redisFromUrl(urlOf(user), { load, logger: log });
      await source.publish?.('pos', Date.now());
      await source.close?.();
      // Either the old floor or the horizon.
      expect(await redis.command('ZCARD', KEY)).toBe(left);
    }
    expect(await redis.command('ZSCORE', KEY, 'old')).toBeNull();
    expect(log.at('warn').map(({ message }) => message)).toEqual(['old floors cannot be removed from Redis']);
    await redis.command('DEL', KEY);
  });

  it('says nothing of a password that is wrong', async () => {
    const source = redisFromUrl(urlOf('reader', 'hunter2'), { load, logger });
    const failure = await source.read(0).catch(String);
    expect(failure).toMatch(/^SourceError: Redis: /);
    expect(failure).not.toContain('hunter2');
    await source.close?.();
  });
});

describe('a server that cannot serve', () => {
  it('is refused while it is a replica', async () => {
    const replica = await startRedis({ replicaOf: redis.port });
    for (const connect of [byIoredis(), byNodeRedis()]) {
      const opened = await openSource(connect, replica.url);
      const { source } = opened;
      await eventually('the refusal', () =>
        source.read(0).then(
          () => false,
          (error: unknown) => String(error).includes('this server is a replica; use the URL of the primary'),
        ),
      );
      await expect(source.publish('pos', 5)).rejects.toThrow('this server is a replica');
      await opened.close();
    }
    await replica.stop();
  });

  it('is explained when the key holds something else, or a score that is not a generation', async () => {
    const source = generationsFromUrl(redis.url, { logger });
    await redis.command('SET', 'tillgate:generations', 'x');
    await expect(source.read(0)).rejects.toThrow('the key holds something other than a sorted set (WRONGTYPE)');
    await redis.command('DEL', 'tillgate:generations');
    await redis.command('ZADD', 'tillgate:generations', '1.5', 'pos');
    await expect(source.read(0)).rejects.toThrow('the set has a member whose score is not a generation');
    await source.close?.();
  });
});

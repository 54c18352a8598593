import { createRequire } from 'node:module';
import type { Options } from 'express-rate-limit';
import { SharedRateStore } from '../../../src/rate-limit/stores';
import type { RedisCommands } from '../../../src/rate-limit/stores';
import { RATE_LIMITS, sharedRedis } from '../../../src/cli/shared-redis';
import { recordingLogger } from '../../support/log';
import { eventually } from '../support/eventually';
import { startRedis } from '../support/redis-server';
import type { RedisServer } from '../support/redis-server';

const PREFIX = 'tillgate:rate-limit:test ';
const windowMs = 60_000;

let redis: RedisServer;
beforeAll(async () => void (redis = await startRedis()));
afterAll(() => redis.stop());

const open: SharedRateStore[] = [];
afterEach(() => open.splice(0).forEach((store) => store.shutdown()));

const requirePackage = createRequire(__filename);

/** Loads this package and no other. */
const only = (allowed: string) => (name: string) => {
  if (name === allowed) return requirePackage(name) as unknown;
  throw Object.assign(new Error(`${name} is not installed`), { code: 'MODULE_NOT_FOUND' });
};

/** As the API connects, with one package installed. */
function connectTo(generations: string, name: string): RedisCommands {
  return sharedRedis({ generationSource: generations }, RATE_LIMITS, only(name))!();
}

describe.each(['ioredis', 'redis'])('SharedRateStore by %s', (name) => {
  const log = recordingLogger();
  beforeEach(() => log.entries.splice(0));

  function process(url = redis.url): SharedRateStore {
    const store = new SharedRateStore(() => connectTo(url, name), PREFIX, log);
    store.init({ windowMs } as Options);
    open.push(store);
    return store;
  }
  const hits = async (store: SharedRateStore, key: string): Promise<number> => (await store.increment(key)).totalHits;

  it('counts from the first request on, in one key that ends by itself', async () => {
    const stores = [process(`${redis.url}?key=mine`), process()];
    const totals = await Promise.all(Array.from({ length: 100 }, (_, index) => hits(stores[index % 2]!, `${name} a`)));
    expect(totals.sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
    const left = Number(await redis.command('PTTL', `${PREFIX}${name} a`));
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(windowMs);
    expect(log.entries).toEqual([]);
  });

  it('a window ends a whole window after its first hit: later hits do not move its end', async () => {
    const store = process();
    await hits(store, `${name} w`);
    await redis.command('PEXPIRE', `${PREFIX}${name} w`, '5000');
    expect(await hits(store, `${name} w`)).toBe(2);
    const left = Number(await redis.command('PTTL', `${PREFIX}${name} w`));
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(5_000);
    expect(Number((await store.increment(`${name} w`)).resetTime)).toBeLessThanOrEqual(Date.now() + 5_000);
  });

  it('goes on in Redis when the server has lost its scripts', async () => {
    const store = process();
    await hits(store, `${name} b`);
    await redis.command('SCRIPT', 'FLUSH');
    expect(await hits(store, `${name} b`)).toBe(2);
    expect(log.entries).toEqual([]);
  });

  it('is refused by a server without permission, warns once by its word, and counts by itself', async () => {
    await redis.command('ACL', 'SETUSER', 'reader', 'on', '>secret', '~*', '+@read', '+ping');
    const store = process(redis.url.replace('//', '//reader:secret@'));
    expect([await hits(store, 'c'), await hits(store, 'c')]).toEqual([1, 2]);
    expect(log.entries.map(({ level, fields }) => [level, fields])).toEqual([['warn', { detail: 'NOPERM' }]]);
  });

  it('goes on by itself while the server is gone, and counts there again once it is back', async () => {
    const store = process();
    await hits(store, `${name} d`);
    await redis.kill();
    expect([await hits(store, `${name} d`), await hits(store, `${name} d`)]).toEqual([2, 3]);
    await redis.start();
    await eventually('the log line that Redis counts', async () => {
      await hits(store, `${name} d`);
      return log.at('info').length > 0;
    });
    expect(log.entries.map(({ level }) => level)).toEqual(['warn', 'info']);
    const counted = Number(await redis.command('GET', `${PREFIX}${name} d`));
    expect(await hits(store, `${name} d`)).toBe(counted + 1);
  });
});

it('without either package says what to install, and not the address', () => {
  expect(() => connectTo('redis://user:secret@127.0.0.1', 'neither')).toThrow(
    new TypeError(
      'rate limits in Redis need the package redis or ioredis, and neither is installed: npm install redis@6',
    ),
  );
});

import express from 'express';
import { rateLimit } from 'express-rate-limit';
import type { Options } from 'express-rate-limit';
import request from 'supertest';
import { LocalRateStore, SharedRateStore } from '../../src/rate-limit/stores';
import { fakeTime } from '../support/fake-time';
import type { FakeTime } from '../support/fake-time';
import { recordingLogger } from '../support/log';
import type { RecordingLogger } from '../support/log';
import { FakeRedis } from './fake-redis';

const windowMs = 60_000;
const open: LocalRateStore[] = [];
let time: FakeTime;
beforeEach(() => {
  time = fakeTime();
  jest.spyOn(Date, 'now').mockImplementation(time.clock);
});
afterEach(() => {
  jest.restoreAllMocks();
  for (const store of open.splice(0)) store.shutdown();
});

function started<StoreType extends LocalRateStore>(store: StoreType): StoreType {
  store.init({ windowMs } as Options);
  open.push(store);
  return store;
}
const hits = async (store: LocalRateStore, key = 'pos'): Promise<number> => (await store.increment(key)).totalHits;
const hitsOfAll = async (store: LocalRateStore, keys: readonly string[]): Promise<number[]> => {
  const totals = [];
  for (const key of keys) totals.push(await hits(store, key));
  return totals;
};

describe('LocalRateStore', () => {
  it('a window ends a whole window after its first hit, not after its last', async () => {
    const store = started(new LocalRateStore());
    for (let second = 0; second < 60; second++) {
      expect(await hits(store)).toBe(second + 1);
      time.step(1_000);
    }
    expect(await store.get('pos')).toBeUndefined();
    const { totalHits, resetTime } = await store.increment('pos');
    expect([totalHits, Number(resetTime)]).toEqual([1, time.clock() + windowMs]);
  });

  it('a clock that steps back does not stretch a window', async () => {
    const store = started(new LocalRateStore());
    expect(await hitsOfAll(store, ['a', 'a'])).toEqual([1, 2]);
    time.step(-3_600_000);
    expect(await hits(store, 'a')).toBe(1);
    time.step(windowMs);
    expect(await hits(store, 'a')).toBe(1);
  });

  it('2,000 made-up keys do not reset a count, and further ones of an address share one', async () => {
    const store = started(new LocalRateStore(2_000));
    for (let n = 0; n < 5; n++) await hits(store, '192.0.2.1 pos-17');
    for (let n = 0; n < 2_000; n++) await hits(store, `192.0.2.1 made-up-${n}`);
    expect(await hits(store, '192.0.2.1 pos-17')).toBe(6);
    // One made-up key found no room and began the count that new keys of the address share.
    expect(await hitsOfAll(store, ['192.0.2.1 x', '192.0.2.1 y', '192.0.2.1 z'])).toEqual([2, 3, 4]);
    expect((await store.get('192.0.2.1 another'))?.totalHits).toBe(4);
    expect(await hitsOfAll(store, ['192.0.2.2 x', '192.0.2.2 y'])).toEqual([1, 2]);
  });

  it('takes a hit of a made-up key back from the count that it shares', async () => {
    const store = started(new LocalRateStore(1));
    await hitsOfAll(store, ['a 1', 'a 2', 'a 3']);
    await store.decrement('a 3');
    expect(await hitsOfAll(store, ['a 4', 'a 1'])).toEqual([2, 2]);
  });

  it('past twice the number of keys, all further ones share one count, and none is forgotten', async () => {
    const store = started(new LocalRateStore(2));
    await hitsOfAll(store, ['a 1', 'b 1', 'c 1', 'd 1', 'e 1']);
    expect(await hitsOfAll(store, ['a 1', 'b 1', 'c 2', 'd 2', 'e 2', 'f 1'])).toEqual([2, 2, 2, 2, 2, 3]);
  });

  it('two limiters of one request are two counts to express-rate-limit, not a mistake', async () => {
    const error = jest.spyOn(console, 'error').mockImplementation();
    const limiter = () => {
      const store = new LocalRateStore();
      open.push(store);
      return rateLimit({ windowMs, limit: 5, store });
    };
    const app = express().use(limiter(), limiter(), (_req, res) => void res.json('ok'));
    await request(app).get('/').expect(200);
    expect(error).not.toHaveBeenCalled();
  });
});

describe('SharedRateStore', () => {
  interface Scene {
    readonly redis: FakeRedis;
    readonly log: RecordingLogger;
    /** Starts a process of its own. */
    readonly process: () => SharedRateStore;
  }

  function scene(): Scene {
    const [redis, log] = [new FakeRedis(), recordingLogger()];
    return { redis, log, process: () => started(new SharedRateStore(() => redis, 'api ', log)) };
  }

  const refused = (code: string) => () => Promise.reject(Object.assign(new Error('secret text'), { code }));

  it('two processes share one count, under a key that names the client, until the end of the window in Redis', async () => {
    const { redis, process } = scene();
    const [one, other] = [process(), process()];
    expect([await hits(one), await hits(other), await hits(one), await hits(one, 'kiosk')]).toEqual([1, 2, 3, 1]);
    expect([redis.hitsOf('api pos'), redis.hitsOf('api kiosk')]).toEqual([3, 1]);
    time.step(1_000);
    expect(Number((await one.increment('pos')).resetTime)).toBe(time.clock() + windowMs - 1_000);
    time.step(windowMs);
    expect(await hits(other)).toBe(1);
  });

  it('requests that come together all count', async () => {
    const { redis, process } = scene();
    const store = process();
    expect(await Promise.all([hits(store), hits(store), hits(store)])).toEqual([1, 2, 3]);
    expect(redis.hitsOf('api pos')).toBe(3);
  });

  it.each([
    ['is gone', refused('ECONNREFUSED'), 'Error (ECONNREFUSED)'],
    ['never responds', () => new Promise<never>(() => undefined), 'Error (TIMEOUT)'],
    ['may not be written', () => Promise.reject(new Error("OOM command not allowed for 'api pos'")), 'OOM'],
    ['sends an unexpected reply', () => Promise.resolve('OK'), 'TypeError'],
    ['sends half of a reply', () => Promise.resolve([100]), 'Error'],
    ['fails without a message', () => Promise.reject(new Error('')), 'Error'],
    ['fails with a message of its client', () => Promise.reject(new Error('read ECONNRESET pos')), 'Error'],
  ])(
    'where Redis %s, a process uses its own count of all requests it has seen, and warns once',
    async (_what, fail, detail) => {
      const { redis, log, process } = scene();
      const store = process();
      await hits(store);
      redis.set('api pos', 100);
      redis.fail = fail;
      expect([await hits(store), await hits(store)]).toEqual([2, 3]);
      time.step(10_000);
      expect(await hits(store)).toBe(4);
      expect(log.entries).toEqual([
        {
          level: 'warn',
          fields: { detail },
          message: 'rate limit: Redis does not count, each process uses its own count',
        },
      ]);
    },
  );

  it('while Redis fails, one request a second asks it, and no other waits', async () => {
    const { redis, process } = scene();
    const store = process();
    await hits(store);
    redis.sent.length = 0;
    redis.fail = refused('ECONNRESET');
    await hits(store);
    expect(redis.sent).toEqual(['EVALSHA']);
    redis.fail = () => new Promise(() => undefined);
    for (let second = 0; second < 2; second++) {
      time.step(1_000);
      await Promise.all([hits(store), hits(store), hits(store)]);
    }
    // Each attempt loads the two scripts again.
    expect(redis.sent).toEqual(['EVALSHA', ...Array.from({ length: 4 }, () => 'SCRIPT')]);
  });

  it('requests that wait for Redis when it begins to fail warn once together', async () => {
    const { redis, log, process } = scene();
    const store = process();
    redis.fail = refused('ECONNRESET');
    await Promise.all([hits(store), hits(store), hits(store)]);
    expect(await hits(store)).toBe(4);
    expect(log.entries).toHaveLength(1);
  });

  it.each([
    ['that was never there', () => {}],
    ['that has lost its scripts', (redis: FakeRedis) => redis.forgetScripts()],
  ])('goes back to a Redis %s by itself, and says so', async (_what, change) => {
    const { redis, log, process } = scene();
    const store = process();
    redis.set('api pos', 50);
    redis.fail = refused('ECONNREFUSED');
    await hits(store);
    redis.fail = undefined;
    change(redis);
    expect(await hits(store)).toBe(2);
    time.step(1_000);
    expect([await hits(store), await hits(store)]).toEqual([51, 52]);
    change(redis);
    expect(await hits(store)).toBe(53);
    expect(log.entries.map(({ level, message }) => [level, message])).toEqual([
      ['warn', 'rate limit: Redis does not count, each process uses its own count'],
      ['info', 'rate limit: Redis counts again, for all processes together'],
    ]);
    expect(log.at('info')[0]?.fields).toEqual({ failures: 1, outageMs: 1_000 });
  });

  it('takes a failed load of the scripts for an outage, and loads them again', async () => {
    const { redis, log, process } = scene();
    const store = process();
    redis.fail = refused('ECONNREFUSED');
    expect(await hits(store)).toBe(1);
    redis.fail = undefined;
    time.step(1_000);
    expect(await hits(store)).toBe(1);
    expect(log.entries).toHaveLength(2);
  });

  it('closes its connection', () => {
    const { redis, process } = scene();
    process().shutdown();
    expect(redis.closed).toBe(true);
  });
});

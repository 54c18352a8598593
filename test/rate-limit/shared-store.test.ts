import { SharedRateStore } from '../../src/rate-limit/shared-store';
import { fakeTime } from '../support/fake-time';
import type { FakeTime } from '../support/fake-time';
import { recordingLogger } from '../support/log';
import type { RecordingLogger } from '../support/log';
import { FakeRedis } from './fake-redis';

const windowMs = 60_000;
const open: SharedRateStore[] = [];
afterEach(() => open.splice(0).forEach((store) => store.shutdown()));

interface Scene {
  readonly redis: FakeRedis;
  readonly time: FakeTime;
  readonly log: RecordingLogger;
  /** Starts a process of its own. */
  readonly process: () => SharedRateStore;
}

function scene(): Scene {
  const [time, log] = [fakeTime(), recordingLogger()];
  const redis = new FakeRedis(time.clock);
  return {
    redis,
    time,
    log,
    process() {
      const store = new SharedRateStore({
        redis,
        prefix: 'api ',
        windowMs,
        logger: log,
        timeoutMs: 5,
        clock: time.clock,
      });
      open.push(store);
      return store;
    },
  };
}

const hits = async (store: SharedRateStore, key = 'pos'): Promise<number> => (await store.increment(key)).totalHits;
const refused = (code: string) => () => Promise.reject(Object.assign(new Error('secret text'), { code }));

it('two processes share one count, under a key that names the client, until the end of the window in Redis', async () => {
  const { redis, time, process } = scene();
  const [one, other] = [process(), process()];
  expect([await hits(one), await hits(other), await hits(one), await hits(one, 'kiosk')]).toEqual([1, 2, 3, 1]);
  expect([redis.count('api pos'), redis.count('api kiosk')]).toEqual([3, 1]);
  expect(new Set(redis.sent)).toEqual(new Set(['EVAL 1 api pos', 'EVAL 1 api kiosk']));
  time.step(1_000);
  expect((await one.increment('pos')).resetTime.getTime()).toBe(time.clock() + windowMs - 1_000);
});

it('requests that come together all count', async () => {
  const { redis, process } = scene();
  const store = process();
  expect(await Promise.all([hits(store), hits(store), hits(store)])).toEqual([1, 2, 3]);
  expect(redis.count('api pos')).toBe(3);
});

it('a window in Redis ends a whole window after its first hit: later hits do not move its end', async () => {
  const { time, process } = scene();
  const [one, other] = [process(), process()];
  for (let second = 0; second < 60; second++) {
    expect(await hits(second % 2 === 0 ? one : other)).toBe(second + 1);
    time.step(1_000);
  }
  const { totalHits, resetTime } = await one.increment('pos');
  expect([totalHits, resetTime.getTime()]).toEqual([1, time.clock() + windowMs]);
});

it('takes a hit back and forgets a key in Redis too', async () => {
  const { process } = scene();
  const [one, other] = [process(), process()];
  await hits(one);
  await hits(one);
  await one.decrement('pos');
  expect(await hits(other)).toBe(2);
  await one.resetKey('pos');
  expect(await hits(other)).toBe(1);
});

it('begins no key when it takes back a hit whose window has ended', async () => {
  const { redis, time, process } = scene();
  const store = process();
  await hits(store);
  time.step(windowMs);
  await store.decrement('pos');
  expect(redis.count('api pos')).toBeUndefined();
});

it('takes a hit back and forgets a key in its own count, which is used while Redis fails', async () => {
  const { redis, process } = scene();
  const store = process();
  redis.fail = refused('ECONNREFUSED');
  expect([await hits(store), await hits(store)]).toEqual([1, 2]);
  await store.decrement('pos');
  expect(await hits(store)).toBe(2);
  await store.resetKey('pos');
  expect(await hits(store)).toBe(1);
});

it.each([
  ['is gone', refused('ECONNREFUSED'), 'ECONNREFUSED'],
  ['never responds', () => new Promise<never>(() => undefined), 'TIMEOUT'],
  ['may not be written', () => Promise.reject(new Error("OOM command not allowed for 'api pos'")), 'OOM'],
  ['sends an unexpected reply', () => Promise.resolve('OK'), 'unexpected reply'],
  ['sends half of a reply', () => Promise.resolve([100]), 'unexpected reply'],
  ['sends no number of hits', () => Promise.resolve(['100', 1]), 'unexpected reply'],
  ['sends no time', () => Promise.resolve([100, null]), 'unexpected reply'],
  ['fails without a message', () => Promise.reject(new Error('')), 'no connection'],
  ['fails with a message of its client', () => Promise.reject(new Error('read ECONNRESET pos')), 'no connection'],
])(
  'where Redis %s, a process uses its own count of all requests it has seen, and warns once',
  async (_what, fail, error) => {
    const { redis, time, log, process } = scene();
    const store = process();
    await hits(store);
    redis.entries.set('api pos', { value: 100, endMs: Infinity });
    redis.fail = fail;
    expect([await hits(store), await hits(store)]).toEqual([2, 3]);
    time.step(10_000);
    expect(await hits(store)).toBe(4);
    expect(log.entries).toEqual([
      {
        level: 'warn',
        fields: { error },
        message: 'rate limit: Redis does not count, each process uses its own count',
      },
    ]);
  },
);

it('while Redis fails, one request a second asks it, and no other waits', async () => {
  const { redis, time, process } = scene();
  const store = process();
  redis.fail = () => new Promise(() => undefined);
  await hits(store);
  for (let second = 0; second < 3; second++) {
    time.step(1_000);
    await Promise.all([hits(store), hits(store), hits(store)]);
  }
  expect(redis.sent).toHaveLength(4);
});

it('requests that wait for Redis when it begins to fail warn once together', async () => {
  const { redis, log, process } = scene();
  const store = process();
  redis.fail = refused('ECONNRESET');
  await Promise.all([hits(store), hits(store), hits(store)]);
  expect(await hits(store)).toBe(4);
  expect(log.entries).toHaveLength(1);
});

it('goes back to Redis by itself, and says so', async () => {
  const { redis, time, log, process } = scene();
  const store = process();
  redis.entries.set('api pos', { value: 50, endMs: Infinity });
  redis.fail = refused('ECONNREFUSED');
  await hits(store);
  redis.fail = undefined;
  expect(await hits(store)).toBe(2);
  time.step(1_000);
  expect([await hits(store), await hits(store)]).toEqual([51, 52]);
  expect(log.entries.map(({ level }) => level)).toEqual(['warn', 'info']);
  expect(log.at('info')).toEqual([
    { level: 'info', fields: {}, message: 'rate limit: Redis counts again, for all processes together' },
  ]);
});

it('closes its connection', () => {
  const { redis, process } = scene();
  process().shutdown();
  expect(redis.closed).toBe(true);
});

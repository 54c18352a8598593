import { SharedRateStore } from '../../src/rate-limit/shared-store';
import type { RedisCommands } from '../../src/rate-limit/shared-store';
import { fakeTime } from '../support/fake-time';
import type { FakeTime } from '../support/fake-time';
import { recordingLogger } from '../support/log';
import type { RecordingLogger } from '../support/log';

const windowMs = 60_000;
const open: SharedRateStore[] = [];
afterEach(() => open.splice(0).forEach((store) => store.shutdown()));

/** The effect of the three scripts; `fail` replaces the reply. */
class FakeRedis implements RedisCommands {
  readonly counts = new Map<string, number>();
  readonly asked: string[] = [];
  fail: (() => Promise<unknown>) | undefined;
  closed = false;

  send([command = '', script = '', , key = '', ttl]: readonly string[]): Promise<unknown> {
    this.asked.push(`${command} ${key}`);
    if (this.fail) return this.fail();
    const count = this.counts.get(key) ?? 0;
    if (script.includes('INCR')) {
      this.counts.set(key, count + 1);
      return Promise.resolve([count + 1, Number(ttl) - 1_000]);
    }
    if (script.includes('DEL')) return Promise.resolve(this.counts.delete(key) ? 1 : 0);
    this.counts.set(key, count - 1);
    return Promise.resolve(null);
  }

  close(): void {
    this.closed = true;
  }
}

interface Scene {
  readonly redis: FakeRedis;
  readonly time: FakeTime;
  readonly log: RecordingLogger;
  /** Starts a process of its own. */
  readonly process: () => SharedRateStore;
}

function scene(): Scene {
  const [redis, time, log] = [new FakeRedis(), fakeTime(), recordingLogger()];
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
  expect([...redis.counts.keys()]).toEqual(['api pos', 'api kiosk']);
  expect((await one.increment('pos')).resetTime?.getTime()).toBe(time.clock() + windowMs - 1_000);
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

it.each([
  ['is gone', refused('ECONNREFUSED'), 'ECONNREFUSED'],
  ['never responds', () => new Promise<never>(() => undefined), 'TIMEOUT'],
  ['may not be written', () => Promise.reject(new Error("OOM command not allowed for 'api pos'")), 'OOM'],
  ['sends an unexpected reply', () => Promise.resolve('OK'), 'unexpected reply'],
  ['fails without a message', () => Promise.reject(new Error('')), 'no connection'],
])(
  'where Redis %s, a process uses its own count of all requests it has seen, and warns once',
  async (_what, fail, error) => {
    const { redis, time, log, process } = scene();
    const store = process();
    await hits(store);
    redis.counts.set('api pos', 100);
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
  expect(redis.asked).toHaveLength(4);
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
  redis.counts.set('api pos', 50);
  redis.fail = refused('ECONNREFUSED');
  await hits(store);
  redis.fail = undefined;
  expect(await hits(store)).toBe(2);
  time.step(1_000);
  expect([await hits(store), await hits(store)]).toEqual([51, 52]);
  expect(log.entries.map(({ level }) => level)).toEqual(['warn', 'info']);
});

it('closes its connection', () => {
  const { redis, process } = scene();
  process().shutdown();
  expect(redis.closed).toBe(true);
});

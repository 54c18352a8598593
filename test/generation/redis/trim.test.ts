import { redisGenerations } from '../../../src/generation/redis/source';
import type { RedisGenerationsOptions } from '../../../src/generation/redis/source';
import { Floors } from '../../../src/generation/floors';
import { SourceReader } from '../../../src/generation/source-reader';
import { fakeTime } from '../../support/fake-time';
import { HOUR, START, keptLog } from '../fixtures';
import { FakeRedis } from './fake';

const HORIZON = '\0horizon';
const DAY = 24 * HOUR;
/** What no process needs any more when a publisher keeps a day: an hour of margin. */
const CUTOFF = START - DAY - HOUR;

function open(options: Partial<RedisGenerationsOptions> = {}) {
  const time = fakeTime(START);
  const redis = new FakeRedis();
  const log = keptLog();
  const { clock, schedule } = time;
  const source = redisGenerations({ client: redis.connect(), clock, schedule, logger: log, ...options });
  /** Publishes, and lets what follows come to its end. */
  const publish = async (clientId = 'pos'): Promise<void> => {
    await source.publish(clientId, clock());
    redis.take();
    await time.advance(0);
  };
  const members = (): string[] => [...redis.scores.keys()];
  return { time, redis, log, source, publish, members };
}

describe('a publish', () => {
  it('removes the floors that discard no token any more, and no other member', async () => {
    const { redis, source, publish, members } = open();
    await source.sentinel?.write(START - 5_000);
    redis.raise('old', CUTOFF - 1);
    redis.raise('needed', CUTOFF);
    redis.raise('counter', 41);
    redis.raise('largest counter', 1e12 - 1);
    await publish();
    expect(members().sort()).toEqual(['', HORIZON, 'counter', 'largest counter', 'needed', 'pos']);
    expect(redis.scores.get(HORIZON)).toBe(String(CUTOFF));
    expect(redis.take()).toBe('TIME ZRANGE ZRANGE ZMSCORE ZADD ZREMRANGEBYSCORE');
  });

  it('keeps the floors for as long as maxTokenAgeMs says', async () => {
    const { redis, publish, members } = open({ maxTokenAgeMs: 7 * DAY });
    redis.raise('needed', CUTOFF - 1);
    redis.raise('old', START - 7 * DAY - HOUR - 1);
    await publish();
    expect(members()).toEqual(['needed', 'pos', HORIZON]);
  });

  it('does neither wait for that nor fail with it; operators hear of it once', async () => {
    const { redis, log, time, publish, members } = open();
    redis.raise('old', CUTOFF - 1);
    redis.refused.set('ZREMRANGEBYSCORE', new Error('NOPERM this user has no permissions'));
    for (let n = 0; n < 3; n++) {
      await publish();
      await time.advance(1_000);
    }
    expect(log.lines).toEqual(['warn: old floors cannot be removed from Redis']);
    expect(log.fields).toEqual([
      {
        key: 'tillgate:generations',
        detail: expect.stringMatching(/^Redis: ZREMRANGEBYSCORE: the user lacks a permission/) as string,
      },
    ]);
    redis.refused.clear();
    await publish();
    expect(members()).not.toContain('old');
  });

  it('writes the horizon before it removes, and removes nothing where that fails', async () => {
    const { redis, publish, members } = open();
    redis.raise('old', CUTOFF - 1);
    const reply = redis.reply.bind(redis);
    redis.reply = (command, args) => {
      if (args[3] === HORIZON) throw new Error('OOM command not allowed');
      return reply(command, args);
    };
    await publish();
    expect(members()).toEqual(['old', 'pos']);
  });

  it('removes a thousand floors a second, until none is left', async () => {
    const { redis, time, publish } = open();
    for (let n = 0; n < 2_500; n++) redis.raise(`client-${n}`, CUTOFF - 1 - n);
    const left = [];
    await publish();
    for (let second = 0; second < 4; second++) {
      left.push(redis.scores.size);
      await time.advance(1_000);
    }
    // Of two, the later floor of a bound stays until the next second; the others are the new floor and the horizon.
    expect(left).toEqual([1_503, 504, 2, 2]);
  });

  it('removes many floors of the same ms together', async () => {
    const { redis, publish, members } = open();
    for (let n = 0; n < 1_500; n++) redis.raise(`client-${n}`, CUTOFF - 1);
    await publish();
    expect(members()).toEqual(['pos', HORIZON]);
  });

  it('never removes a floor that rises in the meantime', async () => {
    const { redis, publish, members } = open();
    redis.raise('old', CUTOFF - 1);
    redis.whenAsked = (command) => {
      if (command === 'ZREMRANGEBYSCORE') redis.raise('old', START);
    };
    await publish();
    expect(members()).toContain('old');
  });

  it('removes nothing while the sentinel is that old', async () => {
    const { redis, source, publish, members } = open();
    await source.sentinel?.write(CUTOFF - 1);
    redis.raise('old', CUTOFF - 1);
    await publish();
    expect(members()).toEqual(['', 'old', 'pos']);
  });

  it('goes by the clock of Redis if that is earlier, and by its own where TIME is not permitted', async () => {
    const { redis, time, publish, members } = open();
    redis.raise('old', CUTOFF - HOUR);
    redis.timeMs = () => START - 2 * HOUR;
    await publish();
    expect(members()).toContain('old');
    redis.refused.set('TIME', new Error('NOPERM'));
    await time.advance(1_000);
    await publish();
    expect(members()).not.toContain('old');
  });

  it('looks for old floors once a second at most, and writes the horizon once a minute', async () => {
    const { redis, time, source } = open();
    for (let n = 0; n < 600; n++) {
      await source.publish('pos', START + n);
      await time.advance(200);
    }
    const asked = redis.take();
    expect(asked.match(/TIME/g)).toHaveLength(121);
    expect(asked.match(/ZADD/g)).toHaveLength(600 + 3);
    expect(asked).not.toContain('ZREMRANGEBYSCORE');
    await time.advance(2_000);
    redis.take();
    await time.advance(2 * HOUR);
    expect([redis.take(), time.pending]).toEqual(['', 0]);
  });

  it('of a process that ends immediately removes too', async () => {
    const { redis, source, members } = open();
    redis.raise('old', CUTOFF - 1);
    await source.publish('pos', START);
    await source.close();
    await source.close();
    expect(members()).toEqual(['pos', HORIZON]);
  });

  it('does not hold up close() for more than a second', async () => {
    const { redis, source, time } = open();
    await source.publish('pos', START);
    redis.silent.add('TIME');
    const closing = source.close();
    await time.advance(1_000);
    await closing;
    expect(redis.clients[0]?.status).toBe('ready');
  });
});

describe('a process that reads a set from which floors are removed', () => {
  function readerOf(source: ReturnType<typeof open>['source'], maxTokenAgeMs: number) {
    const schedule = fakeTime(START).schedule;
    const floors = new Floors({ maxTokenAgeMs, skewMs: 10_000 });
    return new SourceReader({
      source: { ...source, sentinel: undefined },
      floors,
      timeoutMs: 5_000,
      overlapMs: 0,
      schedule,
    });
  }

  it('is told from when on it is complete, with every read', async () => {
    const { source, publish } = open();
    await source.watch(() => undefined);
    expect(Object.hasOwn(await source.read(0), 'completeFromMs')).toBe(false);
    await publish();
    const first = await source.read(0);
    expect([...first.floors]).toEqual([['pos', START]]);
    expect(first.completeFromMs).toBe(CUTOFF);
    expect((await source.read(first.nowMs)).completeFromMs).toBe(CUTOFF);
  });

  it('accepts it with the same token age limit, and refuses it with a longer one', async () => {
    const { source, publish } = open();
    await publish();
    await expect(readerOf(source, DAY).read()).resolves.toBe(0);
    await expect(readerOf(source, 2 * DAY).read()).rejects.toThrow(
      'the store keeps floors for 1500 min, and this process needs those of 2881 min: set maxTokenAgeMs of the source',
    );
  });

  it('does not take what was removed for lost', async () => {
    const { redis, log, time, source, publish } = open();
    for (let n = 0; n < 500; n++) redis.raise(`client-${n}`, CUTOFF + n * 1_000);
    await source.watch(() => undefined);
    let { nowMs } = await source.read(0);
    for (let minute = 0; minute < 10; minute++) {
      await publish(`pos-${minute}`);
      redis.take();
      ({ nowMs } = await source.read(nowMs));
      expect(redis.take()).not.toContain('ROLE');
      await time.advance(60_000);
    }
    expect(redis.scores.size).toBeLessThan(20);
    expect(log.lines).toEqual([]);
  });

  it.each([
    ['flushed', (redis: FakeRedis) => redis.scores.clear(), 'floors are missing from Redis, those known here are kept'],
    [
      'restored, with as many floors',
      (redis: FakeRedis) => redis.scores.set('', String(START - 1)),
      'the set in Redis was flushed or restored, floors known here are kept',
    ],
    [
      'restored from before the horizon',
      (redis: FakeRedis) => redis.scores.delete(HORIZON),
      'the set in Redis was flushed or restored, floors known here are kept',
    ],
  ])('reads the whole set when it was %s', async (_what, lose, message) => {
    const { redis, log, source, publish } = open();
    await source.sentinel?.write(START);
    await source.watch(() => undefined);
    await publish();
    const { nowMs } = await source.read(0);
    lose(redis);
    redis.take();
    await source.read(nowMs);
    expect(redis.take()).toMatch(/ROLE .*ZSCAN/);
    expect(log.lines).toEqual([`warn: ${message}`]);
  });
});

import { redisGenerations } from '../../../src/generation/redis/source';
import type { Floor } from '../../../src/generation/source';
import { fakeTime, settle } from '../../support/fake-time';
import { START, keptLog, reasonOf, startVerifier } from '../fixtures';
import { FakeRedis } from './fake';

function open() {
  const time = fakeTime(START);
  const redis = new FakeRedis();
  const log = keptLog();
  const client = redis.connect();
  const { clock, schedule } = time;
  const source = redisGenerations({ client, sentinel: false, clock, schedule, logger: log });
  const read = async (sinceMs: number): Promise<{ floors: Floor[]; nowMs: number }> => {
    const { floors, nowMs } = await source.read(sinceMs);
    return { floors: [...floors], nowMs };
  };
  return { time, redis, client, log, source, read };
}

/** A watch that stands, and a first read after it. */
async function openWatched() {
  const opened = open();
  const wake = jest.fn();
  const lost = jest.fn();
  const stop = await opened.source.watch(wake, lost);
  const { nowMs } = await opened.read(0);
  opened.redis.take();
  return { ...opened, wake, lost, stop, nowMs, subscriber: opened.redis.clients[1]! };
}

/** Without a watch, with one, and what is left of it when nothing moved. */
const WHOLE = 'ROLE ZSCAN ZMSCORE ZCOUNT';
const WHOLE_AND_COUNTED = 'ROLE ZCOUNT ZCOUNT ZCOUNT ZSCAN ZMSCORE ZCOUNT';
const MOVED = 'PING ZMSCORE ZCOUNT';

describe('what redisGenerations asks', () => {
  it('is the whole set without a watch', async () => {
    const { redis, read } = open();
    redis.write('pos', START);
    const { nowMs } = await read(0);
    expect(redis.take()).toBe(WHOLE);
    expect((await read(nowMs)).floors).toEqual([['pos', START]]);
    expect(redis.take()).toBe(WHOLE);
  });

  it('is nothing but the named clients while a watch stands', async () => {
    const { redis, read, nowMs } = await openWatched();
    redis.scores.set('silent', '7');
    redis.write('pos', 3);
    expect((await read(nowMs)).floors).toEqual([['pos', 3]]);
    expect(redis.take()).toBe(MOVED);
  });

  it('is a sign of life when nothing moved', async () => {
    const { redis, read, nowMs } = await openWatched();
    expect((await read(nowMs)).floors).toEqual([]);
    expect(redis.take()).toBe(MOVED);
  });

  it('is the floor of a client whose message arrives with the response to the PING, also of one that was named before', async () => {
    const { redis, read, nowMs } = await openWatched();
    redis.write('pos', 3);
    let pings = 0;
    redis.whenAsked = (command) => {
      // After the first ZMSCORE has been sent.
      if (command === 'PING' && ++pings === 1) queueMicrotask(() => (redis.write('pos', 4), redis.write('till', 5)));
    };
    expect(new Map((await read(nowMs)).floors)).toEqual(
      new Map([
        ['pos', 4],
        ['till', 5],
      ]),
    );
    expect(redis.take()).toBe('PING ZMSCORE ZCOUNT ZMSCORE');
  });

  it('names a client again to everybody who has not read it', async () => {
    const { redis, read, nowMs } = await openWatched();
    redis.write('pos', 3);
    const first = await read(nowMs);
    const other = await read(nowMs);
    expect(other.floors).toEqual(first.floors);
    expect((await read(other.nowMs)).floors).toEqual([]);
  });

  it('is the whole set for a time before the watch, and for one that has not come', async () => {
    const { redis, source, read } = open();
    const before = await read(0);
    await source.watch(() => undefined);
    redis.take();
    await read(before.nowMs);
    expect(redis.take()).toBe(WHOLE_AND_COUNTED);
    await read(START + 30_000);
    expect(redis.take()).toBe(WHOLE_AND_COUNTED);
  });

  it('is the whole set after more names than are kept', async () => {
    const { redis, read, nowMs } = await openWatched();
    for (let n = 0; n <= 100_000; n++) redis.write(`client-${n}`, START + n);
    expect(new Map((await read(nowMs)).floors).size).toBe(100_001);
    // 101 windows, and 64 edges looked up together.
    expect(redis.take()).toMatch(
      /^ROLE ZCOUNT( ZRANGE){100} ZCOUNT ZCOUNT ZSCAN( ZRANGE){128} ZCOUNT( ZRANGE){101} ZMSCORE ZCOUNT$/,
    );
  });

  it('is the whole set when floors have gone, and operators hear of it once', async () => {
    const { redis, read, log, nowMs } = await openWatched();
    redis.write('pos', START);
    const { nowMs: later } = await read(nowMs);
    redis.scores.clear();
    redis.take();
    await read(later);
    expect(redis.take()).toBe(`${MOVED} ${WHOLE_AND_COUNTED}`);
    expect(log.lines).toEqual(['warn: floors are missing from Redis, those known here are kept']);
    expect(log.fields).toEqual([{ key: 'tillgate:generations', missing: 1, left: 0 }]);
  });

  it('does not mistake a name without a floor for one', async () => {
    const { redis, read, nowMs } = await openWatched();
    redis.say('tillgate:generations', 'unknown');
    redis.say('another channel', 'pos');
    expect((await read(nowMs)).floors).toEqual([]);
    expect(redis.take()).toBe(MOVED);
  });
});

describe('a verifier over redisGenerations', () => {
  it('reads the whole set once and then what it is told', async () => {
    const { redis, source, time } = open();
    const { verifier } = startVerifier({ source }, time);
    await verifier.ready();
    expect(redis.take()).toBe(`PING ${WHOLE_AND_COUNTED}`);
    redis.write('pos', START - 600_000);
    await settle();
    expect(redis.take()).toBe(MOVED);
    expect(reasonOf(() => verifier.recheck('pos', START - 600_001))).toBe('superseded');
    await time.advance(5_000);
    expect(redis.take()).toBe(MOVED);
    await verifier.close();
  });
});

import { redisGenerations } from '../../../src/generation/redis/source';
import type { Floor } from '../../../src/generation/source';
import { fakeTime } from '../../support/fake-time';
import { HOUR, START, keptLog } from '../fixtures';
import { FakeRedis } from './fake';

const MINUTE = 60_000;

/** A process that has read a set of some thousand floors, one per 10 s of the last hours. */
async function openFull({ floors = 3_000, wholeEveryMs = 24 * HOUR } = {}) {
  const time = fakeTime(START);
  const redis = new FakeRedis();
  for (let n = 0; n < floors; n++) redis.raise(`client-${n}`, START - 10_000 * (floors - n) - MINUTE);
  const { clock, schedule } = time;
  const source = redisGenerations({ client: redis.connect(), wholeEveryMs, clock, schedule, logger: keptLog() });
  await source.watch(() => undefined);
  let sinceMs = 0;
  const read = async (): Promise<Map<string, number>> => {
    const snapshot = await source.read(sinceMs);
    sinceMs = snapshot.nowMs;
    return new Map(snapshot.floors);
  };
  /** The next read that compares. */
  const compare = async (afterMs = MINUTE): Promise<Map<string, number>> => {
    await time.advance(afterMs + 1);
    return read();
  };
  await read();
  redis.take();
  return { time, redis, source, read, compare };
}

describe('a floor that is written without a message', () => {
  it('is found by the next comparison, if it is a minute old at most', async () => {
    const { redis, read, compare } = await openFull();
    redis.raise('silent', START - MINUTE + 1);
    redis.raise('client-2000', START + 10);
    expect(await read()).toEqual(new Map());
    const found = await compare();
    expect([found.get('silent'), found.get('client-2000')]).toEqual([START - MINUTE + 1, START + 10]);
  });

  it('is found by the next comparison, if it is older and enters another range of scores', async () => {
    const { redis, compare } = await openFull();
    redis.raise('client-1500', START - MINUTE - 10_000 * 100);
    redis.raise('new', START - MINUTE - 10_000 * 2_900);
    const found = await compare();
    expect([found.get('client-1500'), found.get('new')]).toEqual([START - 1_060_000, START - 29_060_000]);
    // The range in the middle lost a member, and is not read.
    expect([found.has('client-2100'), found.has('client-1200')]).toEqual([true, false]);
    // Known now: the ranges are as before.
    expect((await compare()).has('client-2100')).toBe(false);
  });

  it('is found once every member has been read again, if it stays in its range', async () => {
    const { redis, compare } = await openFull();
    redis.raise('client-2500', START - MINUTE - 10_000 * 500 + 1);
    const rounds = [];
    for (let round = 0; round < 3; round++) rounds.push((await compare()).get('client-2500'));
    expect(rounds).toEqual([undefined, undefined, START - MINUTE - 10_000 * 500 + 1]);
  });

  it('is found within wholeEveryMs in any case', async () => {
    const { redis, compare } = await openFull({ floors: 10_000, wholeEveryMs: 8_000 });
    redis.raise('client-9000', START - MINUTE - 10_000 * 1_000 + 1);
    expect((await compare(2_000)).size).toBe(5_010);
    expect((await compare(2_000)).get('client-9000')).toBe(START - MINUTE - 10_000 * 1_000 + 1);
  });

  it('is found by the next but one comparison, if the clock of this process is an hour ahead', async () => {
    const { redis, compare } = await openFull();
    for (let round = 0; round < 3; round++) {
      redis.raise(`silent-${round}`, START - HOUR + round * MINUTE);
      expect((await compare()).get(`silent-${round}`)).toBe(START - HOUR + round * MINUTE);
    }
  });

  it('is found by every reader of the source', async () => {
    const { redis, source, time, compare } = await openFull();
    const other = await source.read(0);
    redis.raise('silent', START);
    expect((await compare()).get('silent')).toBe(START);
    await time.advance(1);
    const { floors, nowMs } = await source.read(other.nowMs);
    expect(new Map(floors).get('silent')).toBe(START);
    redis.take();
    await source.read(nowMs);
    expect(redis.take()).toBe('PING ZMSCORE ZCOUNT');
  });
});

describe('a comparison', () => {
  it('reads one page of a large set in which nothing moved, once a minute', async () => {
    const { redis, read, compare } = await openFull();
    for (let poll = 0; poll < 100; poll++) await read();
    expect(redis.take()).toBe(Array.from({ length: 100 }, () => 'PING ZMSCORE ZCOUNT').join(' '));
    expect((await compare()).size).toBe(1_010);
    expect(redis.take()).toBe('PING ZMSCORE ZCOUNT ZCOUNT ZCOUNT ZCOUNT ZCOUNT ZCOUNT ZRANGE ZSCAN');
  });

  it('reads the whole set again when its floors may not have arrived', async () => {
    const { redis, source, time } = await openFull();
    const { nowMs } = await source.read(0);
    await time.advance(2 * MINUTE);
    await source.read(nowMs);
    redis.take();
    await source.read(nowMs);
    expect(redis.take()).toMatch(/^ROLE ZCOUNT .*ZSCAN ZRANGE .*ZMSCORE ZCOUNT$/);
  });

  it('counts a bounded number of ranges, however long it goes on', async () => {
    const { redis, compare } = await openFull({ floors: 0 });
    for (let round = 0; round < 100; round++) {
      for (let n = 0; n < 25; n++) redis.write(`client-${round * 100 + n}`, START + round * MINUTE);
      redis.take();
      await compare();
    }
    // 3 of the read itself and of the exact part, and 1 for each 1,000 members.
    expect(redis.asked.filter((command) => command === 'ZCOUNT')).toHaveLength(6);
  });

  it('rejects when the reply is not a page', async () => {
    const { redis, compare } = await openFull();
    const reply = redis.reply.bind(redis);
    redis.reply = (command, args) => (command === 'ZRANGE' ? 'OK' : reply(command, args));
    await expect(compare()).rejects.toThrow('Redis: ZRANGE: the reply is not a page');
  });

  it('hands over its floors page by page', async () => {
    const { time, source } = await openFull();
    const { nowMs } = await source.read(0);
    await time.advance(2 * MINUTE);
    const pages: Floor[][] = [];
    const { floors } = await source.read(nowMs, (page) => Promise.resolve(void pages.push([...page])));
    expect([...floors]).toEqual([]);
    expect(pages.map(({ length }) => length)).toEqual([10, 1_000]);
  });
});

import { startRedis } from '../support/redis-server';
import type { RedisServer } from '../support/redis-server';
import { byIoredis, byNodeRedis, openSource } from './fixtures';
import type { Connect } from './fixtures';

const KEY = 'tillgate:generations';
const FLOORS = 5_000;
const MINUTE = 60_000;

let redis: RedisServer;
let ends: (() => Promise<unknown>)[];

beforeAll(async () => {
  redis = await startRedis();
});

beforeEach(async () => {
  ends = [];
  await redis.command('FLUSHALL');
});

afterEach(async () => {
  for (const end of ends.reverse()) await end();
});

afterAll(() => redis.stop());

/** A process that has read some thousand floors, and whose clock the test moves. */
async function openFull(connect: Connect, options = {}) {
  const start = Date.now();
  let aheadMs = 0;
  const floors = Array.from({ length: FLOORS }, (_, n) => [String(scoreOf(n, start)), `client-${n}`]);
  await redis.command('ZADD', KEY, ...floors.flat());
  const opened = await openSource(connect, redis.url, { clock: () => Date.now() + aheadMs, ...options });
  ends.push(() => opened.close());
  await opened.source.watch(() => undefined);
  let { nowMs } = await opened.source.read(0);
  const read = async (): Promise<Map<string, number>> => {
    const snapshot = await opened.source.read(nowMs);
    ({ nowMs } = snapshot);
    return new Map(snapshot.floors);
  };
  const compare = (afterMs = MINUTE): Promise<Map<string, number>> => {
    aheadMs += afterMs;
    return read();
  };
  return { ...opened, start, read, compare };
}

/** One floor per 10 s of the last hours. */
const scoreOf = (n: number, start: number): number => start - 2 * MINUTE - 10_000 * (FLOORS - n);

/** ZADD without the PUBLISH. */
const write = (clientId: string, generation: number): Promise<unknown> =>
  redis.command('ZADD', KEY, 'GT', String(generation), clientId);

describe.each([
  ['ioredis (RESP3)', byIoredis(3)],
  ['node-redis (RESP2)', byNodeRedis(2)],
  ['node-redis (RESP3)', byNodeRedis(3)],
])('a ZADD whose PUBLISH was forgotten, by %s', (_, connect) => {
  it('is found at the next comparison if it is fresh, or enters another range of scores', async () => {
    const { start, read, compare } = await openFull(connect);
    await write('silent', start - 30_000);
    await write('client-100', scoreOf(4_000, start) + 1);
    expect(await read()).toEqual(new Map());
    const found = await compare();
    expect([found.get('silent'), found.get('client-100')]).toEqual([start - 30_000, scoreOf(4_000, start) + 1]);
    expect(found.size).toBeLessThan(3_500);
  });

  it('is found once the whole set has been read again, part by part, if it stays in its range', async () => {
    const { start, compare } = await openFull(connect, { wholeEveryMs: 40_000 });
    await write('client-100', scoreOf(100, start) + 1);
    const scores = [];
    for (let part = 0; part < 3; part++) scores.push((await compare(10_000)).get('client-100'));
    expect(scores).toContain(scoreOf(100, start) + 1);
  });
});

describe('a set in which nothing moves', () => {
  it('is not read again by 1,000 polls, and one page of it by each comparison', async () => {
    const { read, compare } = await openFull(byIoredis());
    await redis.command('CONFIG', 'RESETSTAT');
    for (let poll = 0; poll < 1_000; poll++) expect(await read()).toEqual(new Map());
    expect(await callsOf('zscan', 'zrange', 'zmscore', 'zcount')).toEqual([0, 0, 1_000, 1_000]);
    await redis.command('CONFIG', 'RESETSTAT');
    for (let round = 0; round < 10; round++) await compare();
    expect(await callsOf('zscan', 'zrange')).toEqual([10, 10]);
  });
});

async function callsOf(...commands: string[]): Promise<number[]> {
  const stats = String(await redis.command('INFO', 'commandstats'));
  return commands.map((name) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0));
}

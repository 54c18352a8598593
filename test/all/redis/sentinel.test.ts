import { eventually } from '../support/eventually';
import { startRedis } from '../support/redis-server';
import type { RedisServer } from '../support/redis-server';
import { byIoredis, byNodeRedis, openSource, startVerifier, verdict } from './fixtures';
import type { OpenSource } from './fixtures';

const KEY = 'tillgate:generations';
const OLD = Date.now() - 60_000;
const FLOOR = OLD + 1;

let redis: RedisServer;
let ends: (() => Promise<unknown>)[];

beforeEach(async () => {
  redis = await startRedis();
  ends = [() => redis.stop()];
});

afterEach(async () => {
  for (const end of ends.reverse()) await end();
});

describe.each([
  ['ioredis', byIoredis()],
  ['node-redis', byNodeRedis()],
])('a Redis with a sentinel, by %s', (_, connect) => {
  async function open(): Promise<OpenSource['source']> {
    const opened = await openSource(connect, redis.url, { sentinel: true });
    ends.push(() => opened.close());
    return opened.source;
  }

  function start(source: OpenSource['source']): ReturnType<typeof startVerifier> {
    const verifier = startVerifier(source);
    ends.push(() => verifier.close());
    return verifier;
  }

  /** What the publisher does: floors first, then the sentinel. */
  async function write(source: OpenSource['source'], sentinel: number): Promise<void> {
    await source.publish('pos', FLOOR);
    await source.sentinel?.write(sentinel);
  }

  it('flushed: a process that starts refuses all until the publisher has written it again; one that runs forgets nothing', async () => {
    const publisher = await open();
    await write(publisher, FLOOR);
    const running = start(await open());
    await running.ready();
    await redis.command('FLUSHALL');

    const cold = start(await open());
    await eventually('its first attempt', () => cold.status().failures > 0);
    expect(cold.status().lastError).toMatch(/^the store has no sentinel/);
    expect(verdict(cold, 'pos', FLOOR)).toBe('generations_unavailable');
    expect(verdict(running, 'pos', OLD)).toBe('superseded');

    await write(publisher, FLOOR + 1);
    await cold.ready();
    expect(verdict(cold, 'pos', OLD)).toBe('superseded');
    expect(verdict(cold, 'pos', FLOOR)).toBe('admitted');
    expect(verdict(running, 'pos', OLD)).toBe('superseded');
  });

  it('restored from an older dump: a process that starts waits until the publisher has repaired it', async () => {
    const publisher = await open();
    await publisher.sentinel?.write(OLD);
    await write(publisher, FLOOR);
    await redis.command('DEL', KEY);
    await redis.command('ZADD', KEY, String(OLD), '');

    const cold = start(await open());
    await eventually('its whole read', async () => (await publisher.sentinel?.read()) === OLD);
    expect(verdict(cold, 'pos', OLD)).toBe('generations_unavailable');
    await write(publisher, FLOOR + 1);
    await cold.ready();
    expect(verdict(cold, 'pos', OLD)).toBe('superseded');
  });
});

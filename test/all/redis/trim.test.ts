import { eventually } from '../support/eventually';
import { startRedis } from '../support/redis-server';
import type { RedisServer } from '../support/redis-server';
import { byIoredis, byNodeRedis, openSource, startVerifier, verdict } from './fixtures';
import type { OpenSource } from './fixtures';

const KEY = 'tillgate:generations';
const HORIZON = '\0horizon';
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

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

describe.each([
  ['ioredis', byIoredis()],
  ['node-redis', byNodeRedis()],
])('a set from which publishers remove old floors, by %s', (_, connect) => {
  async function open(options = {}): Promise<OpenSource> {
    const opened = await openSource(connect, redis.url, options);
    ends.push(() => opened.close());
    return opened;
  }

  function start({ source }: OpenSource, options = {}): ReturnType<typeof startVerifier> {
    const verifier = startVerifier(source, { readTimeoutMs: 2_000, ...options });
    ends.push(() => verifier.close());
    return verifier;
  }

  const members = async (): Promise<string[]> => (await redis.command('ZRANGE', KEY, '0', '-1')) as string[];
  const gone = (member: string): Promise<unknown> =>
    eventually(`the removal of ${member}`, async () => !(await members()).includes(member));

  it('keeps every floor that can still discard a token, counters and the sentinel', async () => {
    const now = Date.now();
    const publisher = await open();
    await publisher.source.sentinel?.write(now);
    await redis.command('ZADD', KEY, String(now - 25 * HOUR - 5_000), 'old', String(now - 24 * HOUR), 'needed');
    await redis.command('ZADD', KEY, '41', 'counter', String(now), '');
    const running = start(await open());
    await running.ready();
    await publisher.source.publish('pos', now);
    await gone('old');
    expect((await members()).sort()).toEqual(['', HORIZON, 'counter', 'needed', 'pos']);
    expect(publisher.log.entries).toEqual([]);
    const cold = start(await open());
    await cold.ready();
    for (const verifier of [running, cold]) {
      expect(verdict(verifier, 'needed', now - 24 * HOUR - 1)).toBe('superseded');
    }
  });

  it('keeps floors that rise while thousands are removed', async () => {
    const now = Date.now();
    const old = now - 26 * HOUR;
    const pairs = Array.from({ length: 3_000 }, (_each, n) => [String(old + n), `client-${n}`]);
    await redis.command('ZADD', KEY, ...pairs.flat());
    const { source } = await open();
    const clients = Array.from({ length: 300 }, (_each, n) => `client-${n * 10}`);
    for (const clientId of clients) await source.publish(clientId, now);
    await eventually('all removals', async () => Number(await redis.command('ZCARD', KEY)) === clients.length + 1);
    const cold = start(await open());
    await cold.ready();
    for (const clientId of clients) expect(verdict(cold, clientId, now - 1)).toBe('superseded');
  });

  it('refuses all tokens of a process with a longer token age limit, and says why', async () => {
    const publisher = await open();
    await publisher.source.publish('pos', Date.now());
    await eventually('the horizon', async () => (await members()).includes(HORIZON));
    const longer = start(await open(), { maxTokenAgeMs: 7 * DAY });
    await eventually('its first attempt', () => longer.status().failures > 0);
    expect(longer.status().lastError).toMatch(/^the store keeps floors for 1500 min, and this process needs those of/);
    expect(verdict(longer, 'kiosk', Date.now())).toBe('generations_unavailable');
    const same = start(await open());
    await same.ready();
    expect(verdict(same, 'kiosk', Date.now())).toBe('admitted');
  });

  it('is noticed when it is flushed, and by nobody when floors are removed', async () => {
    const now = Date.now();
    const publisher = await open();
    await redis.command('ZADD', KEY, String(now - 26 * HOUR), 'old');
    const opened = await open();
    const verifier = start(opened, { pollMs: 100 });
    await verifier.ready();
    await publisher.source.publish('pos', now);
    await gone('old');
    const { reads } = verifier.status();
    await eventually('further reads', () => verifier.status().reads > reads + 2);
    expect(opened.log.entries).toEqual([]);
    await redis.command('FLUSHALL');
    await eventually('a warning', () => opened.log.at('warn').length > 0);
    expect(opened.log.at('warn')[0]?.message).toBe('floors are missing from Redis, those known here are kept');
    expect(verdict(verifier, 'pos', now - 1)).toBe('superseded');
  });
});

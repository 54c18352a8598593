import { memoryGenerations } from '../../src/generation/memory';
import { redisGenerations } from '../../src/generation/redis/source';
import type { PublishingSource } from '../../src/generation/source';
import { START, keptLog } from './fixtures';
import { fakeSource } from './postgres/fake';
import { FakeRedis } from './redis/fake';

const redis = new FakeRedis();
const { source: postgres, pool } = fakeSource();
const SOURCES: [string, PublishingSource][] = [
  ['memoryGenerations', memoryGenerations()],
  ['redisGenerations', redisGenerations({ client: redis.connect(), logger: keptLog() })],
  ['postgresGenerations', postgres],
];

describe.each(SOURCES)('publish() of %s', (_, source) => {
  it.each<[string, unknown, unknown, string]>([
    [
      'a lone surrogate',
      'pos\ud800',
      START,
      'client id must be Unicode text without lone surrogates and zero characters',
    ],
    ['a lone low surrogate', '\udc00pos', START, 'client id must be Unicode text without lone surrogates'],
    ['a zero character', 'pos\0', START, 'client id must be Unicode text without lone surrogates and zero characters'],
    ['an empty client id', '', START, 'client id must be a non-empty string, got ""'],
    ['a client id of another type', 5, START, 'client id must be a non-empty string, got 5'],
    ['a negative generation', 'pos', -1, 'generation must be an integer from 0 to 2^53 - 1, got -1'],
    ['a fraction', 'pos', 1.5, 'generation must be an integer from 0 to 2^53 - 1, got 1.5'],
    ['a generation above 2^53 - 1', 'pos', 2 ** 53, 'generation must be an integer from 0 to 2^53 - 1'],
  ])('refuses %s before anything is sent', async (_case, clientId, generation, message) => {
    const published = source.publish(clientId as string, generation as number);
    await expect(published).rejects.toThrow(TypeError);
    await expect(published).rejects.toThrow(`publish(): ${message}`);
    expect(redis.asked).toEqual([]);
    expect(pool.clients).toEqual([]);
  });

  it('accepts every other text, astral characters too', async () => {
    await source.publish('pos 🍔 \u0001', START);
    redis.take();
    pool.clients.length = 0;
  });
});

describe('a client id that PostgreSQL cannot index', () => {
  it('is refused before it is sent, counted in bytes', async () => {
    const { source, pool: unused } = fakeSource();
    await expect(source.publish('é'.repeat(1_301), START)).rejects.toThrow(
      'publish(): client id must have at most 2600 bytes to be stored in PostgreSQL',
    );
    expect(unused.clients).toEqual([]);
  });

  it('is accepted up to that length', async () => {
    const { source, pool: used } = fakeSource();
    await source.publish('é'.repeat(1_300), START);
    expect(used.clients[0]?.values[0]).toEqual([['é'.repeat(1_300)], [START]]);
  });
});

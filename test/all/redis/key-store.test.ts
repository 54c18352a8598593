import { createRequire } from 'node:module';
import type * as Ioredis from 'ioredis';
import type * as NodeRedis from 'redis';
import type { KeyStore } from '../../../src';
import { redisKeyStore } from '../../../src/generation';
import { startRedis } from '../support/redis-server';
import type { RedisServer } from '../support/redis-server';

const ISSUER = 'https://login.example.com';
const DAY_MS = 86_400_000;
const load = createRequire(__filename);

let redis: RedisServer;
beforeAll(async () => void (redis = await startRedis()));
afterAll(() => redis.stop());

const closing: (() => unknown)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
  await redis.command('FLUSHALL');
});

async function storeBy(name: string): Promise<KeyStore> {
  if (name === 'ioredis') {
    const client = new (load('ioredis') as typeof Ioredis).Redis(redis.url);
    closing.push(() => client.disconnect());
    return redisKeyStore({ client });
  }
  const client = (load('redis') as typeof NodeRedis).createClient({ url: redis.url });
  await client.connect();
  closing.push(() => client.destroy());
  return redisKeyStore({ client });
}

describe.each(['ioredis', 'redis'])('redisKeyStore() by %s', (name) => {
  it('has nothing at first, and then the latest record of each issuer', async () => {
    const store = await storeBy(name);
    expect(await store.read(ISSUER)).toBeUndefined();
    await store.write(ISSUER, 'first', 1_000);
    await store.write(ISSUER, 'second', 2_000);
    await store.write('https://other.example.com', 'other', 1_500);
    expect([await store.read(ISSUER), await store.read('https://other.example.com')]).toEqual(['second', 'other']);
    const left = Number(await redis.command('PTTL', `tillgate:keys:${ISSUER}`));
    expect(left).toBeGreaterThan(29 * DAY_MS);
  });

  it('keeps the later of two records whatever their order, unless a wrong clock has written it', async () => {
    const store = await storeBy(name);
    const times = Array.from({ length: 50 }, (_, index) => 10_000 + ((index * 37) % 50));
    await Promise.all(times.map((atMs) => store.write(ISSUER, `at ${atMs}`, atMs)));
    expect(await store.read(ISSUER)).toBe('at 10049');
    await store.write(ISSUER, 'from the future', 20_001 + DAY_MS);
    await store.write(ISSUER, 'right', 20_000);
    expect(await store.read(ISSUER)).toBe('right');
  });

  it('rejects while Redis is down', async () => {
    const store = redisKeyStore({ client: { ...(await refusingClient()) } });
    await expect(store.read(ISSUER)).rejects.toThrow('down');
    await expect(store.write(ISSUER, 'record', 1)).rejects.toThrow('down');
  });
});

/** A client of ioredis whose commands fail. */
function refusingClient(): Promise<Parameters<typeof redisKeyStore>[0]['client']> {
  const fail = (): Promise<never> => Promise.reject(new Error('down'));
  const client = { status: 'end', isCluster: false, call: fail, on: () => undefined, disconnect: () => undefined };
  return Promise.resolve({ ...client, duplicate: () => client as never });
}

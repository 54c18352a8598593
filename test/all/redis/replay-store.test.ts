import { hash } from 'node:crypto';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { redisReplayStore } from '../../../src/stores';
import type { RedisClient } from '../../../src/stores/redis/connection';
import { dpopApp, proof } from '../../support/dpop';
import { NOW, NOW_MS } from '../../support/issuer';
import { expectRefusal } from '../../support/refusals';
import { startRedis } from '../support/redis-server';
import type { RedisServer } from '../support/redis-server';

const refusedAs = { dpop: 'used' } as const;
let redis: RedisServer;
const clients: { destroy(): void }[] = [];

beforeAll(async () => {
  redis = await startRedis();
});

beforeEach(() => redis.command('FLUSHALL'));

afterAll(async () => {
  for (const client of clients) client.destroy();
  await redis?.stop();
});

async function nodeRedis(): Promise<RedisClient> {
  const client = createClient({ url: redis.url });
  await client.connect();
  clients.push(client);
  return client;
}

function ioredis(): RedisClient {
  const client = new Redis(redis.url);
  clients.push({ destroy: () => client.disconnect() });
  return client;
}

describe.each([
  ['node-redis', nodeRedis],
  ['ioredis', ioredis],
])('the store in Redis, with %s', (_name, connect) => {
  it('takes a proof once, also when copies arrive together', async () => {
    const store = redisReplayStore({ client: await connect() });
    const untilMs = Date.now() + 60_000;
    const copies = await Promise.all([1, 2, 3, 4].map(async () => store.remember('a', untilMs, 'caller')));
    expect(copies.filter(Boolean)).toEqual([true]);
    expect(await store.remember('b', untilMs, 'caller')).toBe(true);
    expect(await store.remember('a', untilMs, 'caller')).toBe(false);
    expect(await store.remember('a', untilMs, 'another caller')).toBe(true);
  });

  it('gives one client its share, forgets what has ended for a second, and takes nothing from another client', async () => {
    let nowMs = NOW_MS;
    const store = redisReplayStore({ client: await connect(), maxProofsPerClient: 2, clock: () => nowMs });
    const remember = async (id: string, untilMs: number, of = 'caller'): Promise<unknown> => {
      const result = Promise.resolve(store.remember(id, untilMs, of));
      return result.catch(({ reason }: { reason: string }) => reason);
    };
    expect(await remember('a', NOW_MS + 10)).toBe(true);
    expect(await remember('b', NOW_MS + 5_000.5)).toBe(true);
    expect(await remember('c', NOW_MS + 10)).toBe('too_many_proofs');
    expect(await remember('a', NOW_MS + 10)).toBe(false);
    expect(await remember('c', NOW_MS + 10, 'another caller')).toBe(true);
    nowMs = NOW_MS + 1_009;
    expect(await remember('c', NOW_MS + 2_000)).toBe('too_many_proofs');
    nowMs = NOW_MS + 1_010;
    expect(await remember('c', NOW_MS + 2_000)).toBe(true);
    expect(await remember('b', NOW_MS + 5_000.5)).toBe(false);
  });

  it('has Redis drop the proofs of a client a second after the last has ended, in whatever order they came', async () => {
    const store = redisReplayStore({ client: await connect(), clock: () => NOW_MS });
    const leftMs = async (): Promise<number> =>
      Number(await redis.command('PTTL', `tillgate:dpop:${hash('sha256', 'caller', 'base64url')}`));
    await store.remember('a', NOW_MS + 60_000.5, 'caller');
    expect(await leftMs()).toBeGreaterThan(50_000);
    await store.remember('b', NOW_MS + 10, 'caller');
    expect(await leftMs()).toBeGreaterThan(50_000);
    expect(await leftMs()).toBeLessThanOrEqual(61_001);
    await store.remember('c', NOW_MS - 10, 'ended');
    expect(
      Number(await redis.command('PTTL', `tillgate:dpop:${hash('sha256', 'ended', 'base64url')}`)),
    ).toBeLessThanOrEqual(1_001);
  });
});

it('a process whose clock is ahead does not forget a proof that one whose clock is behind still accepts', async () => {
  const client = await nodeRedis();
  let trueMs = NOW_MS;
  const processAt = (differenceMs: number): ReturnType<typeof dpopApp> => {
    const clock = (): number => trueMs + differenceMs;
    return dpopApp({ replayStore: redisReplayStore({ client, clock }) }, { clock });
  };
  const [ahead, behind] = [processAt(10_000), processAt(-10_000)];
  const once = proof({ claims: { jti: 'one' } });
  await ahead.send({ proof: once }).expect(200);
  // The last moment at which the process that is behind accepts it; the other one now looks for what has ended.
  trueMs = NOW_MS + 79_999;
  await ahead.send({ proof: proof({ claims: { iat: NOW + 80 } }) }).expect(200);
  expectRefusal(await behind.send({ proof: once }), 'invalid_dpop_proof', behind, refusedAs);
  expect(behind.log.at('info').at(-1)?.fields['detail']).toBe('the proof was used before');
});

it('a Redis without memory refuses new proofs, and the request gets 503', async () => {
  const client = await nodeRedis();
  const through = dpopApp({ replayStore: redisReplayStore({ client, clock: () => NOW_MS }) });
  await redis.command('CONFIG', 'SET', 'maxmemory', '1');
  try {
    expectRefusal(await through.send(), 'replay_store_unavailable', through, refusedAs);
  } finally {
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
  }
  await through.send().expect(200);
});

import { fakeTime, settle } from '../support/fake-time';
import { redisGenerations } from '../../src/generation/redis/source';
import type { GenerationSentinel } from '../../src/generation/source';
import { HOUR, ScriptedSource, START, keptLog, reasonOf, startVerifier } from './fixtures';
import type { StartedVerifier } from './fixtures';
import { fakeSource } from './postgres/fake';
import { FakeRedis } from './redis/fake';

/** A source on a store that carries a sentinel. */
class Store extends ScriptedSource {
  value: number | undefined;
  looks = 0;
  failure: Error | undefined;
  readonly sentinel: GenerationSentinel = {
    read: () => {
      this.looks++;
      return this.failure ? Promise.reject(this.failure) : Promise.resolve(this.value);
    },
    write: (generation) => Promise.resolve(void (this.value = Math.max(generation, this.value ?? 0))),
  };
}

/** A process that starts on this store. */
function start(store: Store): StartedVerifier & { readonly stateOf: (generation: number) => string | undefined } {
  const started = startVerifier({ source: store });
  return { ...started, stateOf: (generation) => reasonOf(() => started.verifier.recheck('pos', generation)) };
}

describe('a process that starts on a store with a sentinel', () => {
  it('is ready as soon as the publisher has raised the sentinel', async () => {
    const store = new Store();
    store.value = START - 100;
    const { time, verifier, stateOf } = start(store);
    await time.advance(900);
    expect(stateOf(START)).toBe('generations_unavailable');
    await store.sentinel.write(START);
    await time.advance(250);
    expect(stateOf(START)).toBeUndefined();
    expect(verifier.status()).toMatchObject({ source: 'fresh', failures: 0 });
  });

  it('reads whole while it waits, and afterwards only what has moved', async () => {
    const store = new Store();
    store.value = 1;
    const { time, verifier } = start(store);
    await settle();
    store.value = 2;
    await time.advance(250);
    expect(store.asked).toEqual([0, START - 60_000]);
    await time.advance(5_000);
    expect([store.asked.length, store.looks, verifier.status().reads]).toEqual([3, 2, 2]);
  });

  it('refuses all while an older dump is in the store, and knows the lost floor once it is published again', async () => {
    const store = new Store();
    store.value = START - HOUR;
    const { time, stateOf } = start(store);
    await time.advance(1_000);
    expect(stateOf(START - 1)).toBe('generations_unavailable');
    store.holds(['pos', START]);
    await store.sentinel.write(START);
    await time.advance(250);
    expect(stateOf(START - 1)).toBe('superseded');
    expect(stateOf(START)).toBeUndefined();
  });

  it('refuses all for as long as a wiped store has no sentinel, and says what is missing', async () => {
    const store = new Store();
    const { time, verifier, log, stateOf } = start(store);
    await time.advance(30_000);
    expect(stateOf(START)).toBe('generations_unavailable');
    expect(verifier.status()).toMatchObject({ source: 'starting', reads: 0 });
    expect(verifier.status().lastError).toMatch(/^the store has no sentinel: .* set the option "sentinel" to false/);
    expect(log.lines).toEqual(['warn: generations cannot be read']);
    store.holds(['pos', START]);
    await store.sentinel.write(START);
    await time.advance(15_000);
    expect(stateOf(START - 1)).toBe('superseded');
    expect(stateOf(START)).toBeUndefined();
  });

  it('accepts a sentinel that stands still for 2.5 s: its publisher is not running', async () => {
    const store = new Store();
    store.value = START - HOUR;
    const { time, stateOf } = start(store);
    await time.advance(2_499);
    expect(stateOf(START)).toBe('generations_unavailable');
    await time.advance(1);
    expect(stateOf(START)).toBeUndefined();
  });

  it('does not take a sentinel that falls while it waits for a publisher that runs', async () => {
    const store = new Store();
    store.value = START;
    const { time, stateOf } = start(store);
    await time.advance(500);
    store.value = START - HOUR;
    await time.advance(500);
    store.value = START - HOUR + 1;
    await time.advance(250);
    expect(stateOf(START)).toBeUndefined();
    expect(store.looks).toBe(6);
  });

  it.each([
    ['NaN', NaN],
    ['a text', '5'],
    ['a fraction', 1.5],
  ])('takes %s for no sentinel', async (_, value) => {
    const store = new Store();
    store.value = value as number;
    const { time, stateOf } = start(store);
    await time.advance(10_000);
    expect(stateOf(START)).toBe('generations_unavailable');
  });

  it('counts a sentinel that cannot be read as a failed read', async () => {
    const store = new Store();
    store.failure = new Error('down');
    const { time, verifier } = start(store);
    await verifier.settled();
    expect(verifier.status()).toMatchObject({ source: 'starting', failures: 1, lastError: 'Error' });
    expect(store.asked).toEqual([]);
    store.failure = undefined;
    store.value = 1;
    await time.advance(5_000);
    expect(verifier.status().source).toBe('fresh');
  });

  it('stops looking once it is closed', async () => {
    const store = new Store();
    const { time, verifier } = start(store);
    await time.advance(500);
    await verifier.close();
    await time.advance(60_000);
    expect(store.looks).toBeLessThanOrEqual(4);
    expect(time.pending).toBe(0);
  });
});

it('a process that runs keeps every floor when its store is wiped', async () => {
  const store = new Store();
  store.value = 1;
  store.holds(['pos', START]);
  const { time, stateOf } = start(store);
  await time.advance(2_500);
  expect(stateOf(START - 1)).toBe('superseded');
  store.value = undefined;
  store.holds();
  await time.advance(120_000);
  expect(stateOf(START - 1)).toBe('superseded');
  expect(stateOf(START)).toBeUndefined();
});

describe('the sentinel of redisGenerations', () => {
  function open(options = {}) {
    const { clock, schedule } = fakeTime(START);
    const redis = new FakeRedis();
    return {
      redis,
      source: redisGenerations({ client: redis.connect(), clock, schedule, logger: keptLog(), ...options }),
    };
  }

  it('is a member of the sorted set that is not a floor', async () => {
    const { redis, source } = open();
    expect(await source.sentinel?.read()).toBeUndefined();
    await source.sentinel?.write(START);
    await source.publish('pos', 5);
    expect(Object.fromEntries(redis.scores)).toEqual({ '': String(START), pos: '5' });
    expect(await source.sentinel?.read()).toBe(START);
    expect([...(await source.read(0)).floors]).toEqual([['pos', 5]]);
  });

  it('fails with the server, and on a score that is not a generation', async () => {
    const { redis, source } = open();
    redis.scores.set('', '1.5');
    await expect(source.sentinel?.read()).rejects.toThrow('score is not a generation');
    redis.refused.set('ZMSCORE', new Error('NOPERM no'));
    await expect(source.sentinel?.read()).rejects.toThrow(/^Redis: ZMSCORE: the user lacks a permission/);
  });

  it('can be left out', () => {
    expect(open({ sentinel: false }).source.sentinel).toBeUndefined();
  });
});

describe('the sentinel of postgresGenerations', () => {
  it('is a row of the table that is not a floor', async () => {
    const { source, pool } = fakeSource({
      'SELECT generation::text': [{ generation: String(START) }],
      FETCH: [
        { client_id: '', generation: String(START) },
        { client_id: 'pos', generation: '5' },
      ],
    });
    expect(await source.sentinel?.read()).toBe(START);
    expect([...(await source.read(0)).floors]).toEqual([['pos', 5]]);
    await source.sentinel?.write(START + 1);
    expect(pool.clients.at(-1)?.asked[0]).toMatch(/^INSERT INTO "tillgate_generations"/);
    expect(pool.clients.at(-1)?.values[0]).toEqual(['', START + 1]);
  });

  it('is undefined where there is no row', async () => {
    expect(await fakeSource().source.sentinel?.read()).toBeUndefined();
  });

  it('can be left out', () => {
    expect(fakeSource({}, { sentinel: false }).source.sentinel).toBeUndefined();
  });
});

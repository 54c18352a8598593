import type { FetchedKeys } from '../../../../src/gate/token/keys/fetch-keys';
import { A, B, expectUnknown, sourceWith, TTL_MS } from './remote-source';
import type { RemoteSource } from './remote-source';

const NONE: FetchedKeys['unusable'] = new Map();

/** Returns the `iat` of a token that is issued now, or that many seconds ago. */
const issued =
  ({ time }: RemoteSource, secondsAgo = 0) =>
  (): number =>
    Math.floor(time.clock() / 1000) - secondsAgo;

describe('a key id that somebody has named before the issuer publishes it', () => {
  it('is asked for by the first token of the new key: 200 with that fetch', async () => {
    const through = await sourceWith(A);
    const { find, fetches, time, respond } = through;
    await expectUnknown(through, ['b']);
    await time.advance(1_000);
    const found = find('b', issued(through));
    await respond(A, B);
    expect([await found, fetches.length]).toEqual(['b', 3]);
  });

  it('is 429 while no fetch is allowed, never 401, and 200 with the next one', async () => {
    const through = await sourceWith(A);
    const { find, fetches, time, respond } = through;
    await expectUnknown(through, ['b', 'x']);
    await time.advance(1_000);
    expect(await find('b', issued(through))).toBe('too_many_unknown_keys');
    expect(fetches).toHaveLength(3);
    await time.advance(4_000);
    const found = find('b', issued(through, 4));
    await respond(A, B);
    expect(await found).toBe('b');
  });

  it('is 429 also where the key was published before, for a token issued since', async () => {
    const through = await sourceWith(A, B);
    const { find, fetches, time } = through;
    await expectUnknown(through);
    expect([await find('b'), fetches.length]).toEqual(['unknown_key', 3]);
    await time.advance(1_000);
    expect([await find('b', issued(through)), fetches.length]).toEqual(['too_many_unknown_keys', 3]);
  });

  it.each([
    [1_000, 'unknown_key'],
    [999, 'too_many_unknown_keys'],
  ])('refuses without asking what was issued a second before the question: %d ms', async (ms, reason) => {
    const through = await sourceWith(A);
    const { find, fetches, time } = through;
    const iat = time.clock() / 1000;
    await time.advance(ms);
    await expectUnknown(through, ['b', 'x']);
    expect([await find('b', () => iat), fetches.length]).toEqual([reason, 3]);
  });

  it('is 401 where the own question of a token has found nothing', async () => {
    const through = await sourceWith(A);
    const { find, time, respond } = through;
    await time.advance(500);
    const refused = find('b', issued(through));
    await respond(A);
    expect(await refused).toBe('unknown_key');
  });
});

describe('a copy of a cache (Age, RFC 9111 section 5.1)', () => {
  it.each([
    ['older than the token', 10_000, 5, 'too_many_unknown_keys'],
    ['as old as the token', 10_000, 10, 'too_many_unknown_keys'],
    ['younger than the token', 10_000, 11, 'unknown_key'],
    ['without an age', 0, 0, 'unknown_key'],
  ])('settles an id for earlier tokens only: one %s', async (_what, ageMs, secondsAgo, reason) => {
    const through = await sourceWith(A);
    const refused = through.find('b', issued(through, secondsAgo));
    await through.respondWith([A], NONE, ageMs);
    expect(await refused).toBe(reason);
    expect(through.fetches).toHaveLength(2);
  });

  it('counts as no older than the age limit of the keys', async () => {
    const through = await sourceWith(A);
    const refused = through.find('b', issued(through, TTL_MS / 1000 + 1));
    await through.respondWith([A], NONE, 1e12);
    expect(await refused).toBe('unknown_key');
  });

  it('leaves the remembered id to tokens from before it: later ones ask again', async () => {
    const through = await sourceWith(A);
    const { find, fetches, respond, respondWith } = through;
    const refused = find('b');
    await respondWith([A], NONE, 10_000);
    expect(await refused).toBe('unknown_key');
    expect([await find('b', issued(through, 11)), fetches.length]).toEqual(['unknown_key', 2]);
    const found = find('b', issued(through, 10));
    await respond(A, B);
    expect(await found).toBe('b');
  });

  it('does not make the keys older: they serve as long as any others', async () => {
    const through = await sourceWith(A);
    const found = through.find('b');
    await through.respondWith([A, B], NONE, TTL_MS);
    expect(await found).toBe('b');
    expect(through.keys.status()).toMatchObject({ state: 'fresh', ageMs: 0 });
  });
});

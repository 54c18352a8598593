import { AuthError } from '../../../../src/gate';
import { NoUsableKey } from '../../../../src/gate/token/keys/fetch-keys';
import { A, B, expectUnknown, header, noFault, REFRESH_MS, source, sourceWith, TTL_MS } from './remote-source';
import type { RemoteSource } from './remote-source';

describe('an unknown key id', () => {
  it('is not settled by a fetch that had begun before it came', async () => {
    const { find, fetches, time, respond } = await sourceWith(A);
    await time.advance(REFRESH_MS);
    const found = find('b');
    // The issuer read its keys for this response before b was among them.
    await respond(A);
    expect(fetches).toHaveLength(3);
    await respond(A, B);
    expect(await found).toBe('b');
  });

  it('is settled by a fetch under way that brings it', async () => {
    const { find, fetches, time, respond } = await sourceWith(A);
    await time.advance(REFRESH_MS);
    const found = find('b');
    await respond(A, B);
    expect(await found).toBe('b');
    expect(fetches).toHaveLength(2);
  });

  it('spends one fetch together with all that wait for the same one', async () => {
    const { find, fetches, respond } = await sourceWith(A);
    const first = Array.from({ length: 100 }, (_, index) => find(`first-${index}`));
    await respond(A);
    const second = Array.from({ length: 100 }, (_, index) => find(`second-${index}`));
    await respond(A);
    expect(new Set(await Promise.all([...first, ...second]))).toEqual(new Set(['unknown_key']));
    expect(fetches).toHaveLength(3);
    expect(await find('third')).toBe('too_many_unknown_keys');
    expect(fetches).toHaveLength(3);
  });

  it('spends one fetch together with all that came during a refresh', async () => {
    const { find, fetches, time, respond } = await sourceWith(A);
    await time.advance(REFRESH_MS);
    const waiting = [find('x'), find('y')];
    await respond(A);
    await respond(A);
    expect(await Promise.all(waiting)).toEqual(['unknown_key', 'unknown_key']);
    const next = find('z');
    await respond(A);
    expect(fetches).toHaveLength(4);
    expect(await next).toBe('unknown_key');
  });

  it('at the start costs no second fetch where the first one began for it', async () => {
    const { find, fetches, time, respond } = await sourceWith(A);
    time.step(TTL_MS + 1);
    const refused = find('x');
    await respond(A);
    expect(await refused).toBe('unknown_key');
    expect(fetches).toHaveLength(2);
  });

  it('is asked for again after 30 s: an issuer may sign with a key moments before all its servers publish it', async () => {
    const { find, fetches, time, respond } = await sourceWith(A);
    const tooEarly = find('b');
    await respond(A);
    expect(await tooEarly).toBe('unknown_key');
    await time.advance(29_999);
    expect(await find('b')).toBe('unknown_key');
    expect(fetches).toHaveLength(2);
    await time.advance(1);
    const inTime = find('b');
    await respond(A, B);
    expect(await inTime).toBe('b');
  });

  it('stays unknown while another one is asked for, so that two of them do not spend the fetches of a third', async () => {
    const through = await sourceWith(A);
    const { find, fetches } = through;
    await expectUnknown(through);
    for (const id of ['x', 'y', 'x', 'y']) expect(await find(id)).toBe('unknown_key');
    expect(fetches).toHaveLength(3);
  });

  it('is an outage when the fetch for it fails, and until the pause is over', async () => {
    const { find, fetches, fail } = await sourceWith(A);
    const waiting = find('b');
    await fail();
    expect(await waiting).toBe('keys_unavailable');
    expect(await find('b')).toBe('keys_unavailable');
    expect(await find('a')).toBe('a');
    expect(fetches).toHaveLength(2);
  });
});

describe('a token with an unknown key id that is refused whatever its key is', () => {
  const expired = (): never => {
    throw new AuthError('expired');
  };

  it('is refused for that, costs no fetch, and does not make the id known', async () => {
    const { find, fetches, respond } = await sourceWith(A);
    for (let index = 0; index < 100; index++) expect(await find('b', expired)).toBe('expired');
    expect(fetches).toHaveLength(1);
    const found = find('b');
    await respond(A, B);
    expect(await found).toBe('b');
  });

  it('is refused for that also while the id is remembered, while no fetch is allowed, and while the keys are old', async () => {
    const through = await sourceWith(A);
    const { find, fetches, time, fail } = through;
    await expectUnknown(through);
    expect([await find('x', expired), await find('z', expired)]).toEqual(['expired', 'expired']);
    await time.advance(REFRESH_MS);
    await fail();
    time.step(TTL_MS - REFRESH_MS);
    expect(await find('z', expired)).toBe('expired');
    expect(fetches).toHaveLength(5);
  });

  it('is not checked where the key is known', async () => {
    const { find, time } = await sourceWith(A);
    expect(await find('a', expired)).toBe('a');
    time.step(TTL_MS);
    const { find: findLater, respond } = source();
    const found = findLater('a', expired);
    await respond(A);
    expect(await found).toBe('a');
  });
});

describe('a key that must not be used', () => {
  const WEAK = new Map([['weak', 'its exponent is weak']]);
  const refusalOf = async ({ keys }: RemoteSource, id: string): Promise<unknown> => {
    const refusal = await Promise.resolve()
      .then(() => keys.find(header(id), noFault))
      .catch((error: AuthError) => error);
    return refusal instanceof AuthError ? [refusal.reason, refusal.privateDetail] : refusal.keyId;
  };
  const UNUSABLE = ['unusable_key', 'the key is not used: its exponent is weak'];

  it('is refused as such, costs no fetch, and the others serve', async () => {
    const through = source();
    await through.respondWith([A], WEAK);
    for (let index = 0; index < 100; index++) expect(await refusalOf(through, 'weak')).toEqual(UNUSABLE);
    expect(await refusalOf(through, 'a')).toBe('a');
    expect(through.fetches).toHaveLength(1);
  });

  it('is told from the usable one of the same id', async () => {
    const through = source();
    await through.respondWith([A], new Map([['a', 'its use is not sig']]));
    expect(await refusalOf(through, 'a')).toBe('a');
  });

  it('is found by the fetch for an id that was unknown, and is no longer one once it is usable', async () => {
    const through = await sourceWith(A);
    const asked = refusalOf(through, 'weak');
    await through.respondWith([A], WEAK);
    expect(await asked).toEqual(UNUSABLE);
    await through.time.advance(REFRESH_MS);
    await through.respond(A, { ...B, keyId: 'weak' });
    expect(await refusalOf(through, 'weak')).toBe('weak');
  });

  it('is told from an outage where the issuer publishes no other', async () => {
    const through = source();
    await through.fail(new NoUsableKey('https://login.test/jwks', WEAK));
    expect(through.keys.status()).toMatchObject({ state: 'starting', keys: 0 });
    expect(await refusalOf(through, 'weak')).toEqual(UNUSABLE);
    const detail = 'https://login.test/jwks has no key that can verify access tokens';
    expect(await refusalOf(through, 'other')).toEqual(['keys_unavailable', detail]);
  });

  it('replaces no good key where the issuer publishes no other', async () => {
    const through = await sourceWith(A);
    await through.time.advance(REFRESH_MS);
    await through.fail(new NoUsableKey('https://login.test/jwks', WEAK));
    expect(await refusalOf(through, 'a')).toBe('a');
    expect(await refusalOf(through, 'weak')).toEqual(UNUSABLE);
  });

  it('is an outage once the key set that has it is too old to serve', async () => {
    const through = source();
    await through.respondWith([A], WEAK);
    await through.time.advance(REFRESH_MS);
    await through.fail();
    through.time.step(TTL_MS - REFRESH_MS + 3_600_000 - 1);
    expect(await refusalOf(through, 'weak')).toEqual(UNUSABLE);
    through.time.step(1);
    const late = refusalOf(through, 'weak');
    await through.fail();
    expect(await late).toEqual(['keys_unavailable', 'the key set could not be read: Error']);
  });
});

describe('the pause after a failure', () => {
  it('is over when the clock has stepped back: the issuer is asked, once for all that wait', async () => {
    const { find, time, fail, respond, fetches } = await sourceWith(A);
    await time.advance(REFRESH_MS);
    await fail();
    time.step(-86_400_000);
    const found = Promise.all([find('a'), find('a')]);
    await respond(A);
    expect([await found, fetches.length]).toEqual([['a', 'a'], 3]);
  });

  it('ends by itself although the clock has stepped back', async () => {
    const { find, time, respond, fail } = await sourceWith(A);
    await time.advance(REFRESH_MS);
    await fail();
    time.step(-86_400_000);
    await time.advance(1_000);
    await respond(A);
    expect(await find('a')).toBe('a');
  });
});

describe('the refresh', () => {
  it('counts the age of keys from the question, not from the response', async () => {
    const { keys, time, respond } = await sourceWith(A);
    await time.advance(REFRESH_MS);
    await time.advance(4_000);
    await respond(A);
    expect(keys.status().ageMs).toBe(4_000);
  });
});

describe('after close()', () => {
  it('the fetch under way is cut, what it brings is dropped, and none begins', async () => {
    const { keys, find, fetches, log, time, respond } = await sourceWith(A);
    await time.advance(REFRESH_MS);
    keys.close();
    expect(fetches.at(-1)?.signal).toMatchObject({ aborted: true, reason: 'is not asked any more' });
    await respond(B);
    expect(time.pending).toBe(0);
    await time.advance(10 * TTL_MS);
    expect(fetches).toHaveLength(2);
    expect(log.entries).toEqual([]);
    expect(await find('b')).toBe('keys_unavailable');
    expect(keys.status()).toMatchObject({ keys: 1, fetches: 2 });
  });

  it('known keys serve, and others are 503', async () => {
    const { keys, find, fetches } = await sourceWith(A);
    keys.close();
    expect([await find('a'), await find('b')]).toEqual(['a', 'keys_unavailable']);
    expect(fetches).toHaveLength(1);
  });

  it('a fetch that is cut leaves no line in the log', async () => {
    const { keys, log, fail } = source();
    keys.close();
    await fail();
    expect(log.entries).toEqual([]);
  });
});

import { AuthError } from '../../../../src/gate';
import { settle } from '../../../support/fake-time';
import { A, B, expectUnknown, header, noFault, REFRESH_MS, source, sourceWith, TTL_MS } from './remote-source';
import type { RemoteSource } from './remote-source';

const STALE_MS = 3_600_000;

/** What has become of a promise by now: `waiting` where it is still open. */
async function soFar(found: Promise<unknown>): Promise<unknown> {
  await settle();
  return Promise.race([found, Promise.resolve('waiting')]);
}

/** A source whose keys are as old as their age limit, and whose issuer has failed since. */
async function staleSource(): Promise<RemoteSource> {
  const through = await sourceWith(A);
  await through.time.advance(REFRESH_MS);
  await through.fail();
  through.time.step(TTL_MS - REFRESH_MS);
  return through;
}

describe('a key that is at hand', () => {
  it('is found without a promise, and known by identity', async () => {
    const { keys } = await sourceWith(A);
    expect(keys.find(header('a'), noFault)).toBe(A);
    expect([keys.has(A), keys.has(B), keys.has({ ...A })]).toEqual([true, false, false]);
  });

  it('waits for a fetch once it is too old and no fetch was tried', async () => {
    const { keys, find, fetches, time, respond } = await sourceWith(A);
    time.step(TTL_MS);
    expect(keys.has(A)).toBe(false);
    const found = find('a');
    expect(await soFar(found)).toBe('waiting');
    await respond(A);
    expect(await found).toBe('a');
    expect(keys.has(A)).toBe(true);
    expect(fetches).toHaveLength(2);
  });

  it('serves immediately while the issuer fails, and asks in the background where the pause is over', async () => {
    const { keys, find, fetches } = await staleSource();
    expect(keys.status().state).toBe('stale');
    expect(keys.has(A)).toBe(true);
    expect(fetches).toHaveLength(2);
    expect(await soFar(find('a'))).toBe('a');
    expect(fetches).toHaveLength(3);
  });

  it('serves immediately during the pause, and the issuer is not asked', async () => {
    const { keys, find, fetches, fail } = await staleSource();
    void keys.find(header('a'), noFault);
    await fail();
    expect(await soFar(find('a'))).toBe('a');
    expect(fetches).toHaveLength(3);
  });

  it('is worth nothing past the stale window', async () => {
    const { keys, find, time } = await staleSource();
    time.step(STALE_MS - 1);
    expect(keys.has(A)).toBe(true);
    time.step(1);
    expect(keys.has(A)).toBe(false);
    const found = find('a');
    expect(await soFar(found)).toBe('waiting');
  });
});

describe('before the first keys', () => {
  it('a token waits for the fetch under way, and everything is ready with it', async () => {
    const { keys, find, fetches, respond } = source();
    const ready = keys.ready().then(() => 'ready');
    const found = find('a');
    expect([await soFar(found), await soFar(ready)]).toEqual(['waiting', 'waiting']);
    await respond(A);
    expect([await found, await ready]).toEqual(['a', 'ready']);
    expect(fetches).toHaveLength(1);
  });

  it('a token that comes after the pause of a failure begins a fetch and waits for it', async () => {
    const { find, fetches, time, fail, respond } = source();
    await fail();
    time.step(1_000);
    const found = find('a');
    expect(await soFar(found)).toBe('waiting');
    expect(fetches).toHaveLength(2);
    await respond(A);
    expect(await found).toBe('a');
  });

  it('a token joins the fetch under way although the clock has stepped back into the pause', async () => {
    const { find, fetches, time, fail, respond } = source();
    await fail();
    await time.advance(1_000);
    expect(fetches).toHaveLength(2);
    time.step(-1_000);
    const found = find('a');
    expect(await soFar(found)).toBe('waiting');
    await respond(A);
    expect(await found).toBe('keys_unavailable');
  });
});

describe('an unknown key id', () => {
  it('that is remembered is refused immediately', async () => {
    const { keys, find, respond } = await sourceWith(A);
    const refused = find('x');
    await respond(A);
    expect(await refused).toBe('unknown_key');
    expect(() => keys.find(header('x'), noFault)).toThrow(new AuthError('unknown_key'));
  });

  it('that is remembered is refused as such also while the issuer fails and the keys are stale', async () => {
    const { keys, find, time, respond, fail } = source({ keysMaxAgeMs: 2_500 });
    await respond(A);
    const refused = find('x');
    await respond(A);
    expect(await refused).toBe('unknown_key');
    await time.advance(2_000);
    await fail();
    time.step(500);
    expect(keys.status().state).toBe('stale');
    expect([await find('x'), await find('y')]).toEqual(['unknown_key', 'keys_unavailable']);
  });

  it('that the issuer could not be asked about yet is one of too many, told with the time until it can be', async () => {
    const through = await sourceWith(A);
    const { keys, find, fetches, time, respond } = through;
    await expectUnknown(through);
    const retryAfter = async (): Promise<unknown> =>
      Promise.resolve(keys.find(header('b'), noFault)).catch((error: AuthError) => [
        error.reason,
        error.retryAfterSeconds,
      ]);
    expect(await retryAfter()).toEqual(['too_many_unknown_keys', 5]);
    await time.advance(3_500);
    expect(await retryAfter()).toEqual(['too_many_unknown_keys', 2]);
    await time.advance(1_499);
    expect(await retryAfter()).toEqual(['too_many_unknown_keys', 1]);
    expect(fetches).toHaveLength(3);
    await time.advance(1);
    const found = find('b');
    await respond(A, B);
    expect(await found).toBe('b');
    expect(fetches).toHaveLength(4);
  });

  /** Asks for an id that the issuer does not have: what it was refused with, and the fetches that it took. */
  async function askFor(id: string, { find, fetches, respond }: RemoteSource): Promise<unknown> {
    const before = fetches.length;
    const refused = find(id);
    await settle();
    if (fetches.length > before) await respond(A);
    return [await refused, fetches.length - before];
  }

  it('spends one of two fetches that are saved up, and not more', async () => {
    const through = await sourceWith(A);
    for (const round of [1, 2]) {
      expect(await askFor(`${round}x`, through)).toEqual(['unknown_key', 1]);
      expect(await askFor(`${round}y`, through)).toEqual(['unknown_key', 1]);
      expect(await askFor(`${round}z`, through)).toEqual(['too_many_unknown_keys', 0]);
      await through.time.advance(300_000);
    }
  });

  it('is asked for again when the clock has stepped back, within 5 s', async () => {
    const through = await sourceWith(A);
    for (const id of ['x', 'y']) expect(await askFor(id, through)).toEqual(['unknown_key', 1]);
    through.time.step(-86_400_000);
    // The age of the key set is unknown too.
    const found = through.find('a');
    await through.respond(A);
    expect(await found).toBe('a');
    expect(await askFor('x', through)).toEqual(['too_many_unknown_keys', 0]);
    await through.time.advance(5_000);
    expect(await askFor('x', through)).toEqual(['unknown_key', 1]);
  });

  it('is one of a thousand that are remembered', async () => {
    const { find, fetches, respond } = await sourceWith(A);
    const ids = Array.from({ length: 1_500 }, (_, index) => `${index}`.padEnd(1_024, 'x'));
    const refused = ids.map((id) => find(id));
    await respond(A);
    expect(new Set(await Promise.all(refused))).toEqual(new Set(['unknown_key']));
    expect(await find(ids[500]!)).toBe('unknown_key');
    expect(fetches).toHaveLength(2);
    void find(ids[499]!);
    await settle();
    expect(fetches).toHaveLength(3);
  });

  it('of a withdrawn key is refused also while no fetch is allowed', async () => {
    const through = await sourceWith(A, B);
    const { find } = through;
    await expectUnknown(through, ['x', 'y'], [B]);
    expect(await find('z')).toBe('too_many_unknown_keys');
    expect(await find('a')).toBe('unknown_key');
  });

  it('that is none at all is asked for and remembered as others are', async () => {
    const { keys, fetches, respond } = await sourceWith(A, B);
    const anonymous = { keyId: undefined, algorithm: 'ES256' } as const;
    const refused = Promise.resolve(keys.find(anonymous, noFault)).catch((error: AuthError) => error.reason);
    await respond(A, B);
    expect(await refused).toBe('unknown_key');
    expect(() => keys.find(anonymous, noFault)).toThrow(new AuthError('unknown_key'));
    expect(fetches).toHaveLength(2);
  });
});

describe('a key set that hangs', () => {
  it.each([0, 0.5, 0.999])(
    'never lets a cached key wait, also with an age limit of 2.5 s (random %d)',
    async (random) => {
      const { keys, fetches, time, respond, fail } = source({ keysMaxAgeMs: 2_500, random: () => random });
      await respond(A);
      const missingAtMs: number[] = [];
      for (let elapsedMs = 0; elapsedMs < 30_000; elapsedMs += 10) {
        await time.advance(10);
        const found = await soFar(Promise.resolve(keys.find(header('a'), noFault)));
        if (found !== A || !keys.has(A)) missingAtMs.push(elapsedMs);
        // As fetch does when its signal aborts.
        if (fetches.at(-1)?.signal.aborted) await fail();
      }
      expect(missingAtMs).toEqual([]);
      expect(keys.status().state).toBe('stale');
    },
  );

  it('never lets a cached key wait, also when an unknown id has started the fetch', async () => {
    const { keys, find, fetches, time, respond, fail } = source({ keysMaxAgeMs: 2_500 });
    await respond(A);
    await time.advance(1_400);
    const asked = find('b');
    await time.advance(879);
    expect(fetches.at(-1)?.signal.aborted).toBe(false);
    await time.advance(1);
    expect(fetches.at(-1)?.signal).toMatchObject({ aborted: true, reason: 'did not respond within 880 ms' });
    await fail();
    expect(await asked).toBe('keys_unavailable');
    time.step(1_000);
    expect(await soFar(Promise.resolve(keys.find(header('a'), noFault)))).toBe(A);
  });
});

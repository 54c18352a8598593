import type { AuthError } from '../../../src';
import { A, B, header, REFRESH_MS, source, sourceWith, TTL_MS } from './remote-source';

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
    expect(await find('third')).toBe('keys_unavailable');
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
    const { find, fetches, respond } = await sourceWith(A);
    for (const id of ['x', 'y']) {
      const refused = find(id);
      await respond(A);
      expect(await refused).toBe('unknown_key');
    }
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

describe('the pause after a failure', () => {
  it('is never announced as longer than 30 s, also when the clock has stepped back', async () => {
    const { keys, time, fail } = await sourceWith(A);
    await time.advance(REFRESH_MS);
    await fail();
    time.step(-86_400_000);
    const refusal = await Promise.resolve(keys.find(header('a'))).catch((error: AuthError) => error);
    expect(refusal).toMatchObject({ reason: 'keys_unavailable', headers: { 'Retry-After': '30' } });
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
  it('is cut after 5 s, and the pause begins', async () => {
    const { fetches, time } = await sourceWith(A);
    await time.advance(REFRESH_MS);
    await time.advance(4_999);
    expect(fetches.at(-1)?.signal.aborted).toBe(false);
    await time.advance(1);
    expect(fetches.at(-1)?.signal).toMatchObject({ aborted: true, reason: 'did not respond within 5000 ms' });
    expect(fetches).toHaveLength(2);
  });

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
    expect(fetches.at(-1)?.signal.aborted).toBe(true);
    await respond(B);
    await time.advance(10 * TTL_MS);
    expect(fetches).toHaveLength(2);
    expect(log.entries).toEqual([]);
    expect(await find('b')).toBe('keys_unavailable');
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

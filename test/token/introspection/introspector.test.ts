import { AuthError } from '../../../src';
import { settle } from '../../support/fake-time';
import { introspectorScene as scene } from '../../support/introspector-scene';

const reasonOf = (result: unknown): unknown => (result instanceof AuthError ? result.reason : result);
const many = (count: number, name: string): string[] => Array.from({ length: count }, (_, index) => `${name}${index}`);

describe('introspector(): an active token', () => {
  it('is asked about once within cacheMs, and again after it', async () => {
    const { answers, asked, time, result, get } = scene();
    const claims = { sub: 'a' };
    answers.set('t', claims);
    expect(get('t')).toBeUndefined();
    expect(await result('t')).toBe(claims);
    await time.advance(29_999);
    expect([get('t'), await result('t')]).toEqual([claims, claims]);
    expect(asked).toEqual(['t']);
    await time.advance(1);
    expect(get('t')).toBeUndefined();
    await result('t');
    expect(asked).toEqual(['t', 't']);
  });

  it('counts from the request, not from the response', async () => {
    const { answers, time, get, introspect, hold, release } = scene();
    answers.set('t', {});
    hold();
    const asking = introspect('t');
    await time.advance(4_000);
    release();
    await asking;
    await time.advance(25_999);
    expect(get('t')).toEqual({});
    await time.advance(1);
    expect(get('t')).toBeUndefined();
  });

  it('is asked about again after the clock has stepped back', async () => {
    const { answers, time, get, result } = scene();
    answers.set('t', {});
    await result('t');
    time.step(-1);
    expect(get('t')).toBeUndefined();
  });

  it('is asked about each time with cacheMs 0', async () => {
    const { answers, asked, get, result } = scene(0);
    answers.set('t', {});
    await result('t');
    expect(get('t')).toBeUndefined();
    await result('t');
    expect(asked).toHaveLength(2);
  });

  it('is told from tokens that differ in one character', async () => {
    const { answers, get, result } = scene();
    answers.set('token-a', {});
    await result('token-a');
    expect([get('token-b'), get('token-a '), get('TOKEN-A')]).toEqual([undefined, undefined, undefined]);
    expect(reasonOf(await result('token-b'))).toBe('inactive');
  });

  it('that is inactive later is forgotten immediately', async () => {
    const { answers, asked, time, get, result } = scene();
    answers.set('t', {});
    await result('t');
    answers.delete('t');
    await time.advance(30_000);
    expect(reasonOf(await result('t'))).toBe('inactive');
    expect(get('t')).toBeUndefined();
    expect(reasonOf(await result('t'))).toBe('inactive');
    expect(asked).toHaveLength(2);
    // The time at which it was active is recent again.
    time.step(-10_000);
    expect(get('t')).toBeUndefined();
  });
});

describe('introspector(): what is not active', () => {
  it('is remembered for 5 s, however long active ones are', async () => {
    const { answers, asked, time, result } = scene(300_000);
    await result('t');
    await time.advance(4_999);
    expect(reasonOf(await result('t'))).toBe('inactive');
    expect(asked).toHaveLength(1);
    answers.set('t', {});
    await time.advance(1);
    expect(await result('t')).toEqual({});
  });

  it('never pushes out what is active', async () => {
    const { answers, get, result } = scene();
    answers.set('t', {});
    await result('t');
    for (const token of many(12_000, 'garbage')) await result(token);
    expect(get('t')).toEqual({});
  });

  it('is refused without a call when it is too long to be a token', async () => {
    const { asked, result } = scene();
    expect(reasonOf(await result('x'.repeat(16_384)))).toBe('inactive');
    expect(await result('x'.repeat(16_385))).toMatchObject({
      reason: 'malformed_token',
      privateDetail: 'an opaque token of more than 16384 characters',
    });
    expect(asked).toHaveLength(1);
  });
});

describe('introspector(): calls', () => {
  it('are one per token at a time', async () => {
    const { answers, asked, introspect, hold, release } = scene(0);
    answers.set('t', {});
    hold();
    const asking = many(50, '').map(() => introspect('t'));
    release();
    const results = await Promise.all(asking);
    expect(asked).toEqual(['t']);
    expect(new Set(results).size).toBe(1);
    await introspect('t');
    expect(asked).toHaveLength(2);
  });

  it('are 16 at a time; 256 tokens wait in their order, the others get 503 immediately', async () => {
    const { asked, result, hold, release, log } = scene();
    hold();
    const results = many(300, 'g').map((token) => result(token));
    await settle();
    expect(asked).toHaveLength(16);
    const turnedAway = (await Promise.all(results.slice(272))) as AuthError[];
    expect(turnedAway.map(reasonOf)).toEqual(turnedAway.map(() => 'introspection_unavailable'));
    expect(turnedAway[0]?.retryAfterSeconds).toBe(1);
    release();
    expect((await Promise.all(results.slice(0, 272))).map(reasonOf)).toEqual(many(272, '').map(() => 'inactive'));
    expect(asked).toEqual(many(272, 'g'));
    expect(log.entries).toEqual([]);
  });

  it('have the same share for each address: made-up tokens of one starve no new tokens of others', async () => {
    const { answers, result, hold, release } = scene();
    const good = many(20, 'good');
    for (const token of good) answers.set(token, { sub: token });
    hold();
    const flood = many(400, 'g').map((token) => result(token, '198.51.100.7'));
    await settle();
    const others = good.map((token, index) => result(token, `203.0.113.${index % 4}`));
    flood.push(...many(400, 'h').map((token) => result(token, '198.51.100.7')));
    await settle();
    release();
    expect(await Promise.all(others)).toEqual(good.map((sub) => ({ sub })));
    const reasons = (await Promise.all(flood)).map(reasonOf);
    expect(reasons.filter((reason) => reason === 'inactive')).toHaveLength(16 + 256 - 20);
  });

  it('about a token that was active go before a flood of made-up ones', async () => {
    const { answers, asked, time, result, hold, release } = scene();
    answers.set('t', {});
    await result('t');
    await time.advance(30_000);
    hold();
    const flood = many(400, 'g').map((token) => result(token));
    const known = result('t');
    await settle();
    release();
    expect(await known).toEqual({});
    expect(asked.indexOf('t', 1)).toBe(17);
    await Promise.all(flood);
  });

  it('and the wait for them end after 5 s with 503', async () => {
    const { asked, probes, time, result, hold } = scene();
    hold();
    const results = many(20, 'g').map((token) => result(token));
    await time.advance(4_999);
    expect(asked).toHaveLength(16);
    await time.advance(1);
    const refused = (await Promise.all(results)) as AuthError[];
    expect(new Set(refused.map(reasonOf))).toEqual(new Set(['introspection_unavailable']));
    expect(refused[0]?.privateDetail).toBe('it did not respond within 5000 ms');
    // The others had their turn at the same moment, in which their time was over too.
    expect([asked.length, probes.length]).toEqual([20, 1]);
    await time.advance(5_000);
    expect(time.pending).toBe(0);
  });

  it('leave their places to others when they were given up', async () => {
    const { asked, time, result, hold } = scene();
    hold();
    const given = many(20, 'g').map((token) => result(token));
    await time.advance(5_000);
    await Promise.all(given);
    await time.advance(5_250);
    const later = many(20, 'h').map((token) => result(token));
    await settle();
    expect(asked.slice(20)).toEqual(many(16, 'h'));
    await time.advance(5_000);
    await Promise.all(later);
  });

  it('end when the gate is closed, and start no more', async () => {
    const { asked, result, hold, close, log } = scene();
    hold();
    const asking = result('t');
    await settle();
    close();
    expect(reasonOf(await asking)).toBe('introspection_unavailable');
    expect(reasonOf(await result('u'))).toBe('introspection_unavailable');
    expect([asked, log.entries]).toEqual([['t'], []]);
  });
});

describe('introspector(): whose turn it is', () => {
  /** An introspector whose places are all taken. */
  async function fullScene() {
    const full = scene();
    full.hold();
    const taken = many(16, 'r').map((token) => full.result(token));
    await settle();
    return { ...full, taken };
  }

  it('addresses take turns, each in the order of its calls', async () => {
    const { asked, result, release } = await fullScene();
    const calls: readonly [string, string][] = [
      ...['a1', 'a2', 'a3', 'a4'].map((token): [string, string] => [token, '192.0.2.1']),
      ['b1', '192.0.2.2'],
      ['c1', '192.0.2.3'],
      ['b2', '192.0.2.2'],
    ];
    const results = calls.map(([token, address]) => result(token, address));
    release();
    await Promise.all(results);
    expect(asked.slice(16)).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4']);
  });

  it('the last call of the address with the most is turned away, where another address comes', async () => {
    const { asked, result, release } = await fullScene();
    const flood = many(256, 'a').map((token) => result(token, '192.0.2.1'));
    const others = [result('b', '192.0.2.2'), result('c', '2001:db8::1')];
    const turnedAway = await Promise.all([...flood.slice(254), result('one more of a', '192.0.2.1')]);
    expect(turnedAway.map(reasonOf)).toEqual(turnedAway.map(() => 'introspection_unavailable'));
    release();
    await Promise.all([...flood, ...others]);
    expect(asked.slice(16, 20)).toEqual(['a0', 'b', 'c', 'a1']);
  });

  it.each([
    ['the host part of an IPv6 address', '2001:db8:1:2::1', '2001:db8:1:2:ffff::7'],
    ['how much of it is abbreviated', '2001:db8::1', '2001:db8:0:0:8::'],
    ['how an IPv4 address is written', '192.0.2.9', '::ffff:192.0.2.9'],
  ])('one address are those that differ in %s only', async (_what, one, other) => {
    const { asked, result, release } = await fullScene();
    const results = [result('a1', one), result('a2', other), result('b', '2001:db8:1:3::1')];
    release();
    await Promise.all(results);
    expect(asked.slice(16)).toEqual(['a1', 'b', 'a2']);
  });
});

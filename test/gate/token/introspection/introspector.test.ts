import type { AuthError } from '../../../../src/gate';
import { settle } from '../../../support/fake-time';
import { introspectorScene as scene, many, reasonOf } from '../../../support/introspector-scene';

/** More than all calls that may run take to start. */
const MANY_TURNS = 200;

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

  it('start four turns of the event loop apart: in between, new connections are accepted', async () => {
    const { asked, result, hold, release } = scene();
    hold();
    const results = many(3, 't').map((token) => result(token));
    const seen: number[] = [];
    for (let turn = 0; turn < 12; turn++) {
      await settle(1);
      seen.push(asked.length);
    }
    expect(seen).toEqual([1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
    release();
    await Promise.all(results);
  });

  it('are 16 at a time where one site asks; 256 tokens wait in their order, the others get 429 immediately', async () => {
    const { asked, result, hold, release, log } = scene();
    hold();
    const results = many(300, 'g').map((token) => result(token));
    await settle(MANY_TURNS);
    expect(asked).toHaveLength(16);
    const turnedAway = (await Promise.all(results.slice(272))) as AuthError[];
    expect(turnedAway.map(reasonOf)).toEqual(turnedAway.map(() => 'too_many_unknown_keys'));
    expect(turnedAway[0]).toMatchObject({
      status: 429,
      retryAfterSeconds: 1,
      privateDetail: 'too many opaque tokens wait',
    });
    release();
    expect((await Promise.all(results.slice(0, 272))).map(reasonOf)).toEqual(many(272, '').map(() => 'inactive'));
    expect(asked).toEqual(many(272, 'g'));
    expect(log.entries).toEqual([]);
  });

  it('about made-up tokens of one /48 do not delay new tokens of other sites', async () => {
    const { answers, asked, result, hold, release } = scene();
    const good = many(30, 'good');
    for (const token of good) answers.set(token, { sub: token });
    hold();
    const flood = many(460, 'g').map((token, host) => result(token, `2001:db8:1:${host.toString(16)}::1`));
    await settle(MANY_TURNS);
    const others = good.map((token, index) => result(token, `203.0.${index}.1`));
    flood.push(...many(460, 'h').map((token, host) => result(token, `2001:db8:1:${host.toString(16)}::1`)));
    await settle(MANY_TURNS);
    // Half of the calls are left for others.
    expect(asked.slice(16)).toEqual(good.slice(0, 16));
    release();
    expect(await Promise.all(others)).toEqual(good.map((sub) => ({ sub })));
    expect(asked.slice(16, 46)).toEqual(good);
    const reasons = (await Promise.all(flood)).map(reasonOf);
    expect(reasons.filter((reason) => reason === 'inactive')).toHaveLength(16 + 256 - 14);
  });

  it('about 400 active tokens of one client do not delay those of others', async () => {
    const { answers, asked, time, result, hold, release } = scene();
    const ofGreedy = many(400, 'greedy');
    for (const token of ofGreedy) answers.set(token, { client_id: 'greedy' });
    for (const token of ['known', 'new']) answers.set(token, { client_id: token });
    for (const token of [...ofGreedy, 'known']) await result(token);
    await time.advance(30_000);
    asked.length = 0;
    hold();
    // From as many sites: what counts is the client.
    const flood = ofGreedy.map((token, index) => result(token, `10.${index % 200}.1.1`));
    await settle(MANY_TURNS);
    const others = [result('known', '192.0.2.1'), result('new', '192.0.2.1')];
    await settle(MANY_TURNS);
    expect(asked.slice(16)).toEqual(['known', 'new']);
    release();
    expect(await Promise.all(others)).toEqual([{ client_id: 'known' }, { client_id: 'new' }]);
    const refused = (await Promise.all(flood)).map(reasonOf).filter((reason) => reason === 'too_many_unknown_keys');
    expect(refused).toHaveLength(400 - 16 - 256);
  });

  it('and the wait for them end after 5 s with 503', async () => {
    const { asked, probes, time, result, hold } = scene();
    hold();
    const results = many(20, 'g').map((token) => result(token));
    await settle(MANY_TURNS);
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
    await settle(MANY_TURNS);
    await time.advance(5_000);
    await Promise.all(given);
    await time.advance(5_250);
    const later = many(20, 'h').map((token) => result(token));
    await settle(MANY_TURNS);
    expect(asked.slice(20)).toEqual(many(16, 'h'));
    await time.advance(5_000);
    await Promise.all(later);
  });

  it('end when the gate is closed, and start no more', async () => {
    const { asked, result, hold, close, log } = scene();
    hold();
    const asking = result('t');
    await settle(MANY_TURNS);
    close();
    expect(reasonOf(await asking)).toBe('introspection_unavailable');
    expect(reasonOf(await result('u'))).toBe('introspection_unavailable');
    expect([asked, log.entries]).toEqual([['t'], []]);
  });
});

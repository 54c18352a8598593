import type { AuthError } from '../../../../src/gate';
import { FetchError } from '../../../../src/gate/net/http';
import { settle } from '../../../support/fake-time';
import { introspectorScene as scene, many, reasonOf } from '../../../support/introspector-scene';
import type { IntrospectorScene } from '../../../support/introspector-scene';

const limited = (retryAfter?: string): Error => new FetchError('it responded with 429', { status: 429, retryAfter });
const LIMITED =
  'the introspection endpoint limits calls: opaque tokens that are new here are 429 until its Retry-After is over';
const [ONE, OTHER] = ['198.51.100.7', '203.0.113.1'];

/** An introspector whose endpoint has responded with 429, and whose pause of 5 s is over. */
async function afterPause(): Promise<IntrospectorScene> {
  const through = scene();
  through.answers.set('*', limited());
  await through.result('first', OTHER);
  through.answers.clear();
  await through.time.advance(5_000);
  through.asked.length = 0;
  return through;
}

describe('introspector(): an endpoint that responds with 429', () => {
  // `fakeTime()` starts at this date.
  it.each([
    ['absent', undefined, 5],
    ['7 s', '7', 7],
    ['60 s', '60', 60],
    ['more than a minute', '61', 60],
    ['a day', '86400', 60],
    ['more than any number', '9'.repeat(400), 60],
    ['a date', 'Fri, 15 Jan 2027 08:00:40 GMT', 40],
    ['not a number', 'soon', 5],
    ['negative', '-1', 5],
    ['not an integer', '1.5', 5],
    ['a day that does not exist', 'Fri, 99 Jan 2027 08:00:40 GMT', 5],
  ])('is not asked until its Retry-After is over, and not probed: %s', async (_what, retryAfter, seconds) => {
    const { answers, asked, probes, time, result, log } = scene();
    answers.set('*', limited(retryAfter));
    const first = (await result('a')) as AuthError;
    expect(first).toMatchObject({
      reason: 'too_many_unknown_keys',
      status: 429,
      retryAfterSeconds: seconds,
      privateDetail: 'the introspection endpoint has responded with 429',
    });
    answers.clear();
    await time.advance(seconds * 1_000 - 1);
    const paused = (await result('b', OTHER)) as AuthError;
    expect([paused.reason, paused.retryAfterSeconds]).toEqual(['too_many_unknown_keys', 1]);
    expect([asked, probes]).toEqual([['a'], []]);
    await time.advance(1);
    expect(reasonOf(await result('b', OTHER))).toBe('inactive');
    const fields = { issuer: 'https://login.test', detail: 'it responded with 429' };
    expect(log.entries).toEqual([{ level: 'warn', fields, message: LIMITED }]);
  });

  it('names what is left of the pause, to the second', async () => {
    const { answers, time, result } = scene();
    answers.set('*', limited('60'));
    await result('a');
    await time.advance(20_001);
    expect(await result('b')).toMatchObject({ retryAfterSeconds: 40 });
  });

  it.each(['0', 'Fri, 15 Jan 2027 07:59:00 GMT'])(
    'is asked again immediately where nothing is left: %s',
    async (over) => {
      const { answers, asked, result } = scene();
      answers.set('*', limited(over));
      expect(await result('a')).toMatchObject({ reason: 'too_many_unknown_keys', retryAfterSeconds: 1 });
      await result('b');
      expect(asked).toEqual(['a', 'b']);
    },
  );

  it('leaves what is known: active tokens are accepted, inactive ones refused', async () => {
    const { answers, asked, result } = scene();
    answers.set('good', { sub: 'good' });
    await result('good');
    await result('bad');
    answers.set('*', limited('60'));
    await result('new');
    expect([await result('good'), reasonOf(await result('bad'))]).toEqual([{ sub: 'good' }, 'inactive']);
    expect(asked).toHaveLength(3);
  });

  it('turns away what waits for its turn without asking', async () => {
    const { answers, asked, result, hold, release } = scene();
    answers.set('*', limited());
    hold();
    const results = many(40, 'g').map((token) => result(token));
    await settle(100);
    release();
    expect(new Set((await Promise.all(results)).map(reasonOf))).toEqual(new Set(['too_many_unknown_keys']));
    expect(asked).toHaveLength(16);
  });

  it('is no outage where the probe gets it', async () => {
    const { answers, probes, time, result, log } = scene();
    answers.set('odd', new FetchError('it failed', { status: 403 }));
    answers.set('*', limited());
    expect(reasonOf(await result('odd'))).toBe('introspection_unavailable');
    await settle();
    expect(reasonOf(await result('odd'))).toBe('too_many_unknown_keys');
    await time.advance(5_000);
    answers.set('*', {});
    expect([await result('a'), probes.length]).toEqual([{}, 1]);
    expect(log.entries.map(({ message }) => message)).toEqual([LIMITED]);
  });

  it('is asked again after the clock has stepped back', async () => {
    const { answers, time, result } = scene();
    answers.set('*', limited('60'));
    await result('a');
    time.step(-3_600_000);
    answers.clear();
    expect(reasonOf(await result('b'))).toBe('inactive');
  });

  it('is reported again once it has been quiet for a minute', async () => {
    const { answers, time, result, log } = scene();
    answers.set('*', limited());
    for (const quietMs of [5_000, 64_999, 65_000]) {
      await result(`a${quietMs}`);
      await time.advance(quietMs);
    }
    expect(log.entries).toHaveLength(1);
    await result('b');
    expect(log.entries).toHaveLength(2);
  });
});

describe('introspector(): for a minute after the pause', () => {
  it('20 inactive tokens of a site are asked about, then one per second; the others are 429', async () => {
    const { asked, time, result } = await afterPause();
    for (const token of many(20, 'g')) expect(reasonOf(await result(token, ONE))).toBe('inactive');
    const refused = await result('h', '198.51.100.99');
    expect(refused).toMatchObject({
      reason: 'too_many_unknown_keys',
      status: 429,
      retryAfterSeconds: 1,
      privateDetail: 'too many opaque tokens of this network were not active',
    });
    expect(asked).toHaveLength(20);
    expect(reasonOf(await result('other', OTHER))).toBe('inactive');
    await time.advance(1_000);
    expect(reasonOf(await result('h', ONE))).toBe('inactive');
    expect(reasonOf(await result('i', ONE))).toBe('too_many_unknown_keys');
    expect(asked).toHaveLength(22);
  });

  it.each([0, 7, 19])(
    'tokens that are sent together are asked about up to the 20th, after %i one by one',
    async (before) => {
      const { asked, result, hold, release } = await afterPause();
      for (const token of many(before, 'b')) await result(token, ONE);
      hold();
      const results = many(60, 'g').map((token) => result(token, ONE));
      await settle(300);
      expect(asked).toHaveLength(Math.min(20, before + 16));
      release();
      const reasons = (await Promise.all(results)).map(reasonOf);
      expect(asked).toHaveLength(20);
      expect(reasons.filter((reason) => reason === 'inactive')).toHaveLength(20 - before);
      expect(reasons.filter((reason) => reason === 'too_many_unknown_keys')).toHaveLength(60 - (20 - before));
    },
  );

  it('good tokens that are sent together with inactive ones wait for those, and are accepted', async () => {
    const { answers, asked, result } = await afterPause();
    for (const token of many(19, 'b')) await result(token, ONE);
    for (const token of many(40, 'good')) answers.set(token, { token });
    const results = await Promise.all([...many(40, 'good'), 'bad'].map((token) => result(token, ONE)));
    expect(results.slice(0, 40)).toEqual(many(40, 'good').map((token) => ({ token })));
    expect([reasonOf(results[40]), asked.length]).toEqual(['inactive', 60]);
  });

  it('a token that waits for another one is asked about when that gets no response', async () => {
    const { asked, time, result, hold, release } = await afterPause();
    for (const token of many(19, 'b')) await result(token, ONE);
    hold();
    const slow = result('slow', ONE);
    await time.advance(1_000);
    const waits = [result('w0', ONE), result('w1', ONE)];
    await settle(50);
    expect(asked.slice(19)).toEqual(['slow', 'w0']);
    await time.advance(4_000);
    expect(reasonOf(await slow)).toBe('introspection_unavailable');
    await settle(50);
    expect(asked.slice(19)).toEqual(['slow', 'w0', 'w1']);
    release();
    expect((await Promise.all(waits)).map(reasonOf)).toEqual(['inactive', 'inactive']);
  });

  it('active tokens do not count, however many are sent together', async () => {
    const { answers, result } = await afterPause();
    answers.set('*', { active: 'yes' });
    const results = await Promise.all(many(100, 'good').map((token) => result(token, ONE)));
    expect(new Set(results)).toEqual(new Set([answers.get('*')]));
  });

  it('a token that was active here, and a caller whose client is known, do not count', async () => {
    const through = scene();
    const { answers, time, introspect, result } = through;
    const ours = many(30, 'ours');
    for (const token of ours) answers.set(token, {});
    for (const token of ours) await result(token, ONE);
    answers.clear();
    answers.set('new', limited());
    await result('new');
    await time.advance(30_000);
    for (const token of ours) expect(reasonOf(await result(token, ONE))).toBe('inactive');
    const client = { address: ONE, client: 'client till' };
    for (const token of many(30, 'x')) {
      expect(reasonOf(await introspect(token, client).catch((error: unknown) => error))).toBe('inactive');
    }
    expect(reasonOf(await result('made-up', ONE))).toBe('inactive');
  });

  it('and no longer', async () => {
    const { time, result } = await afterPause();
    await time.advance(59_000);
    for (const token of many(20, 'g')) await result(token, ONE);
    expect(reasonOf(await result('h', ONE))).toBe('too_many_unknown_keys');
    await time.advance(1_000);
    for (const token of many(40, 'i')) expect(reasonOf(await result(token, ONE))).toBe('inactive');
  });
});

const SHARED =
  'more than half of all callers have one address: if it is that of a proxy, set "trust proxy", because callers share by address';

describe('introspector(): the address of most callers', () => {
  it('is in the log once where more than half of at least 20 callers have it', async () => {
    const { result, log } = scene();
    for (const token of many(19, 'g')) await result(token, ONE);
    expect(log.entries).toEqual([]);
    for (const token of many(2_000, 'h')) await result(token, ONE);
    const fields = { issuer: 'https://login.test', address: ONE };
    expect(log.entries).toEqual([{ level: 'warn', fields, message: SHARED }]);
  });

  it('is not where half of them have it, nor where none is known', async () => {
    const { result, log } = scene();
    for (const [index, token] of many(3_000, 'g').entries())
      await result(token, index % 2 ? ONE : `10.0.${index % 256}.1`);
    for (const token of many(100, 'h')) await result(token);
    expect(log.entries).toEqual([]);
  });
});

describe('introspector(): made-up tokens', () => {
  it('of one site, at an endpoint with 20 calls a minute: new good tokens of other sites are 429 until they are 200, never 503', async () => {
    let [minute, calls] = [0, 0];
    const { time, result } = scene(30_000, (token, nowMs) => {
      if (Math.floor(nowMs / 60_000) > minute) [minute, calls] = [Math.floor(nowMs / 60_000), 0];
      if (++calls > 20) return limited(String(60 - Math.floor((nowMs % 60_000) / 1_000)));
      return token.startsWith('good') ? { token } : undefined;
    });
    const waiting = new Map(many(30, 'good').map((token, index) => [token, { address: `10.${index}.0.1`, dueS: 3 }]));
    const reasons = new Set<unknown>();
    let second = 0;
    for (; second < 600 && waiting.size > 0; second++) {
      const flood = many(10, `made-up-${second}-`).map((token) => result(token, ONE));
      const due = [...waiting].filter(([, { dueS }]) => dueS <= second);
      const tried = due.map(async ([token, state]) => {
        const got = await result(token, state.address);
        if (reasonOf(got) === got) return void waiting.delete(token);
        reasons.add(reasonOf(got));
        state.dueS = second + (got as AuthError).retryAfterSeconds;
      });
      await Promise.all([...flood, ...tried]);
      await time.advance(1_000);
    }
    expect([[...reasons], waiting.size]).toEqual([['too_many_unknown_keys'], 0]);
    expect(second).toBeLessThan(300);
  });

  it('one per second, of the one address that all callers have, at an endpoint without a limit: every new good token is 200', async () => {
    const { time, result, log } = scene(30_000, (token) => (token.startsWith('good') ? { token } : undefined));
    for (let second = 0; second < 300; second++) {
      const tokens = [`made-up-${second}`, ...many(5, `good-${second}-`)];
      const [madeUp, ...good] = await Promise.all(tokens.map((token) => result(token, ONE)));
      expect([reasonOf(madeUp), good]).toEqual(['inactive', tokens.slice(1).map((token) => ({ token }))]);
      await time.advance(1_000);
    }
    expect(log.entries.map(({ message }) => message)).toEqual([SHARED]);
  });
});

import type { AuthError } from '../../../../src/gate';
import { FetchError } from '../../../../src/gate/net/http';
import { settle } from '../../../support/fake-time';
import { introspectorScene as scene, many, reasonOf } from '../../../support/introspector-scene';

const ISSUER = 'https://login.test';
const status = (code?: number): Error => new FetchError('it failed', code === undefined ? {} : { status: code });

describe('introspector(): an endpoint that is down', () => {
  it.each([undefined, 302, 401, 403, 404, 502, 503, 504])(
    'is left alone for a growing pause, for all tokens: %s',
    async (code) => {
      const { answers, asked, time, result, log } = scene();
      answers.set('*', status(code));
      const isOurs = code === 401 || code === 403;
      const first = (await result('a')) as AuthError;
      expect(log.entries[0]).toEqual({
        level: isOurs ? 'error' : 'warn',
        fields: { issuer: ISSUER, detail: 'it failed' },
        message: isOurs
          ? 'the authorization server refuses clientId or clientSecret of introspection; IdentityServer wants the name and a secret of an API resource'
          : 'the introspection endpoint is not available',
      });
      expect([first.reason, first.privateDetail, first.retryAfterSeconds]).toEqual([
        'introspection_unavailable',
        'it failed',
        1,
      ]);
      await time.advance(249);
      const paused = (await result('b')) as AuthError;
      expect([paused.reason, paused.privateDetail]).toEqual([
        'introspection_unavailable',
        'the introspection endpoint is not asked for now',
      ]);
      expect(asked).toEqual(['a']);
      await time.advance(1);
      await result('b');
      await time.advance(499);
      await result('c');
      expect(asked).toEqual(['a', 'b']);
      await time.advance(1);
      answers.clear();
      expect(reasonOf(await result('c'))).toBe('inactive');
      const message = 'the introspection endpoint responds again';
      expect(log.entries.slice(1)).toEqual([
        { level: 'info', fields: { issuer: ISSUER, failures: 2, outageMs: 750 }, message },
      ]);
    },
  );

  it('names the pause, up to 5 s', async () => {
    const { answers, time, result } = scene();
    answers.set('*', status());
    for (let failure = 0; failure < 10; failure++) {
      await result(`t${failure}`);
      await time.advance(5_000);
    }
    await result('last');
    const refused = (await result('next')) as AuthError;
    expect(refused.retryAfterSeconds).toBe(5);
  });

  it('is asked again after the clock has stepped back, not when it has caught up', async () => {
    const { answers, asked, time, result } = scene();
    answers.set('*', status());
    await result('a');
    await settle();
    time.step(-3_600_000);
    answers.set('*', {});
    expect(await result('b')).toEqual({});
    expect(asked).toEqual(['a', 'b']);
  });

  it('is left alone again when it fails once more after the clock has stepped back', async () => {
    const { answers, asked, time, result } = scene();
    answers.set('*', status());
    await result('a');
    await settle();
    time.step(-3_600_000);
    await result('b');
    await settle();
    await result('c');
    expect(asked).toEqual(['a', 'b']);
  });

  it('counts calls that fail together once', async () => {
    const { answers, asked, time, result, hold, release, log } = scene();
    answers.set('*', status());
    hold();
    const results = many(40, 'g').map((token) => result(token));
    // More than 16 calls take to start.
    await settle(100);
    release();
    await Promise.all(results);
    // Those that waited for their turn are not sent any more.
    expect([asked.length, log.entries.length]).toEqual([16, 1]);
    await time.advance(250);
    await result('t');
    expect(asked).toHaveLength(17);
  });

  it('does not extend what it said before', async () => {
    const { answers, time, get, result } = scene();
    answers.set('t', {});
    await result('t');
    answers.set('t', status());
    await time.advance(29_999);
    expect(await result('t')).toEqual({});
    await time.advance(1);
    expect(reasonOf(await result('t'))).toBe('introspection_unavailable');
    expect(get('t')).toBeUndefined();
  });

  it.each([undefined, 200, 302, 400, 401, 403, 404, 413, 422, 500, 502, 503, 504])(
    'is not down where only some tokens fail, however many: %s',
    async (code) => {
      const { answers, asked, probes, time, result, log } = scene();
      const odd = many(20, 'odd');
      for (const token of odd) answers.set(token, status(code));
      const good = many(64, 'good');
      for (const token of good) answers.set(token, { sub: token });
      const results = [...odd, ...good].map((token) => result(token));
      expect((await Promise.all(results.slice(0, 20))).map(reasonOf)).toEqual(
        odd.map(() => 'introspection_unavailable'),
      );
      expect(await Promise.all(results.slice(20))).toEqual(good.map((sub) => ({ sub })));
      expect([asked.length, probes.length]).toEqual([84, 1]);
      expect(log.entries).toEqual([
        {
          level: 'warn',
          fields: { issuer: ISSUER, detail: 'it failed' },
          message: 'a token could not be introspected',
        },
      ]);
      await time.advance(59_999);
      await result('odd1');
      await settle();
      expect([probes.length, log.entries.length]).toEqual([2, 1]);
      await time.advance(250);
      await result('odd2');
      await settle();
      expect([probes.length, log.entries.length]).toEqual([3, 2]);
    },
  );

  it('is found out by a token that no caller has chosen, a new one each time, at most each 125 ms', async () => {
    const { answers, probes, time, result } = scene();
    answers.set('odd', status(403));
    await result('odd');
    await time.advance(124);
    await result('odd');
    await time.advance(1);
    await result('odd');
    await settle();
    expect(probes).toHaveLength(2);
    expect(probes[0]).toMatch(/^made-up-by-tillgate-[\da-f-]{36}$/);
    expect(new Set(probes).size).toBe(2);
  });

  it('may throw in the logger without an unhandled rejection', async () => {
    const { answers, result, log } = scene();
    answers.set('*', status());
    log.warn = () => {
      throw new Error('the log is full');
    };
    expect(reasonOf(await result('a'))).toBe('introspection_unavailable');
    await settle();
  });

  it('exposes nothing of an unexpected error', async () => {
    const { answers, result, log } = scene();
    answers.set('*', new Error('Authorization: Basic c2VjcmV0'));
    const refused = (await result('t')) as AuthError;
    expect([refused.privateDetail, refused.cause]).toEqual(['introspection failed', undefined]);
    expect(JSON.stringify(log.entries)).not.toContain('c2VjcmV0');
  });
});

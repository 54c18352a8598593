import { AuthError } from '../../../src';
import { FetchError } from '../../../src/token/keys/fetch-json';
import { settle } from '../../support/fake-time';
import { introspectorScene as scene } from '../../support/introspector-scene';

const reasonOf = (result: unknown): unknown => (result instanceof AuthError ? result.reason : result);
const ISSUER = 'https://login.test';
const status = (code?: number): Error => new FetchError('it failed', code === undefined ? {} : { status: code });
const many = (count: number, name: string): string[] => Array.from({ length: count }, (_, index) => `${name}${index}`);

describe('introspector(): an endpoint that is down', () => {
  it.each([undefined, 302, 401, 403, 404, 429, 502, 503, 504])(
    'is left alone for a growing pause, for all tokens: %s',
    async (code) => {
      const { answers, asked, time, result, log } = scene();
      answers.set('*', status(code));
      const isOurs = code === 401 || code === 403;
      const first = (await result('a')) as AuthError;
      expect(log.entries[0]).toEqual({
        level: isOurs ? 'error' : 'warn',
        fields: { issuer: ISSUER, detail: 'it failed', ...(!isOurs && { failures: 1 }) },
        message: isOurs
          ? 'the authorization server refuses clientId or clientSecret of introspection'
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
      expect(log.entries[1]?.level).toBe(isOurs ? 'error' : 'warn');
      const message = 'the introspection endpoint responds again';
      expect(log.entries.at(-1)).toEqual({ level: 'info', fields: { issuer: ISSUER }, message });
    },
  );

  it('says so when it refuses our credentials', async () => {
    const { answers, result, log } = scene();
    answers.set('*', status(401));
    await result('a');
    expect(log.at('error')).toMatchObject([
      { message: 'the authorization server refuses clientId or clientSecret of introspection' },
    ]);
  });

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
    time.step(-60_000);
    expect(((await result('next')) as AuthError).retryAfterSeconds).toBe(5);
  });

  it('counts calls that fail together once', async () => {
    const { answers, asked, time, result, hold, release, log } = scene();
    answers.set('*', status());
    hold();
    const results = many(40, 'g').map(result);
    await settle();
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

  it.each([200, 400, 413, 422, 500])('stops no other token where the token can be the cause: %s', async (code) => {
    const { answers, asked, time, result, log } = scene();
    answers.set('odd', status(code));
    answers.set('t', {});
    expect(reasonOf(await result('odd'))).toBe('introspection_unavailable');
    expect(await result('t')).toEqual({});
    await result('odd');
    expect(asked).toEqual(['odd', 't', 'odd']);
    expect(log.entries.map(({ message }) => message)).toEqual(['a token could not be introspected']);
    await time.advance(60_000);
    await result('odd');
    expect(log.entries).toHaveLength(2);
  });

  it('exposes nothing of an unexpected error', async () => {
    const { answers, result, log } = scene();
    answers.set('*', new Error('Authorization: Basic c2VjcmV0'));
    const refused = (await result('t')) as AuthError;
    expect([refused.privateDetail, refused.cause]).toEqual(['introspection failed', undefined]);
    expect(JSON.stringify(log.entries)).not.toContain('c2VjcmV0');
  });
});

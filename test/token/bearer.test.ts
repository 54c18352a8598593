import { AuthError } from '../../src';
import { bearerToken } from '../../src/token/bearer';
import type { TokenLocations } from '../../src/token/bearer';
import { parseToken } from '../../src/token/jws';
import { token } from '../support/issuer';

function reasonOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof AuthError) return error.reason;
    throw error;
  }
  return 'none';
}

describe('bearerToken: requests as other frameworks than node:http might hand them on', () => {
  const header = (authorization: unknown): TokenLocations => ({ headers: { authorization } as never });

  it.each<[string, unknown]>([
    ['an array of one', ['Bearer x']],
    ['an array of two', ['Bearer x', 'Bearer y']],
    ['an empty array', []],
    ['a number', 17],
    ['null', null],
    ['an object', { toString: () => 'Bearer x' }],
    ['true', true],
  ])('refuses an Authorization header that is %s, without a throw of another kind', (_what, value) => {
    expect(reasonOf(() => bearerToken(header(value)))).toBe('malformed_authorization');
  });

  it('works without url, rawHeaders and body', () => {
    expect(bearerToken(header('Bearer abc.def.ghi'))).toBe('abc.def.ghi');
  });

  it('refuses a line break in a header that no HTTP parser has seen', () => {
    expect(reasonOf(() => bearerToken(header('Bearer abc\r\nX: y')))).toBe('malformed_authorization');
  });

  it.each<[string, unknown]>([
    ['text', 'a=1&access_token=x'],
    ['bytes', Buffer.from('access_token=x')],
    ['a parsed object', { access_token: ['x'] }],
    ['an object without prototype', Object.assign(Object.create(null) as object, { access_token: 'x' })],
  ])('finds a token in a form body that is %s', (_what, body) => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    expect(reasonOf(() => bearerToken({ headers, body }))).toBe('token_in_body');
  });

  it('does not take a minute for a hostile header', () => {
    const started = performance.now();
    for (const hostile of [
      `Bearer ${'='.repeat(60_000)}x`,
      `${'a '.repeat(30_000)}`,
      `Bearer${' '.repeat(60_000)}\t`,
      `x ${','.repeat(60_000)}`,
    ]) {
      reasonOf(() => bearerToken(header(hostile)));
    }
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});

describe('parseToken', () => {
  it('refuses more than 16384 characters before it looks at any of them', () => {
    const raw = token({ claims: { filler: 'x'.repeat(12_500) } });
    expect(raw.length).toBeGreaterThan(16_384);
    expect(reasonOf(() => parseToken(raw))).toBe('malformed_token');
    expect(reasonOf(() => parseToken('.'.repeat(10_000_000)))).toBe('malformed_token');
  });

  it('says what is wrong without repeating any of it', () => {
    const secret = Buffer.from('{"secret":').toString('base64url');
    try {
      parseToken(`${secret}.${secret}.${secret}`);
      throw new Error('nothing was thrown');
    } catch (error) {
      expect((error as AuthError).privateDetail).toBe('the header is no strict JSON object');
      expect((error as AuthError).cause).toBeUndefined();
    }
  });
});

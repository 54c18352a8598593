import { AuthError } from '../../src';
import { bearerToken } from '../../src/token/bearer';
import type { TokenRequest } from '../../src/token/bearer';
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
  const header = (authorization: unknown): TokenRequest => ({ headers: { authorization } as never });

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

describe('bearerToken: the header to the character (RFC 9110 section 11.4, RFC 6750 section 2.1)', () => {
  const detailOf = (request: TokenRequest): unknown => {
    try {
      return bearerToken(request);
    } catch (error) {
      const { reason, privateDetail } = error as AuthError;
      return [reason, privateDetail];
    }
  };
  const withHeader = (authorization: unknown): TokenRequest => ({ headers: { authorization } as never });
  const notOne = ['malformed_authorization', 'not one scheme with its credentials'];
  const noToken = ['malformed_authorization', 'no single b64token after "Bearer"'];

  it.each<[string, unknown, unknown]>([
    ['one blank', 'Bearer abc', 'abc'],
    ['two blanks', 'Bearer  abc', 'abc'],
    ['a token of one character', 'bearer a', 'a'],
    ['padding', 'bearer a==', 'a=='],
    ['padding alone', 'Bearer =', noToken],
    ['no token', 'Bearer ', noToken],
    ['the scheme alone', 'Bearer', noToken],
    ['a blank at the end', 'Bearer abc ', noToken],
    ['a tab after the scheme', 'Bearer\tabc', notOne],
    ['a tab after another scheme', 'Basic\tabc', notOne],
    ['a blank before the scheme', ' Bearer abc', notOne],
    ['nothing', '', notOne],
    ['bearer after a comma, at the end', 'Basic x,bearer', notOne],
    ['bearer after a comma and blanks', 'Basic x,  Bearer y', notOne],
    ['a name that begins with bearer after a comma', 'Digest x,bearers=1', ['missing_token', undefined]],
    ['another scheme', 'Basic abc', ['missing_token', undefined]],
    ['no text', 17, ['malformed_authorization', 'the Authorization header is not a string']],
  ])('%s', (_what, header, expected) => {
    expect(detailOf(withHeader(header))).toEqual(expected);
  });

  const twice = ['malformed_authorization', 'more than one Authorization header'];
  it.each<[string, readonly string[], unknown]>([
    ['one header', ['Host', 'x', 'Authorization', 'Bearer abc'], 'abc'],
    ['a header whose value is the name', ['X-Name', 'Authorization', 'authorization', 'Bearer abc'], 'abc'],
    ['another header of that length', ['Authorizatiom', 'x', 'Authorization', 'Bearer abc'], 'abc'],
    ['two headers', ['Authorization', 'Bearer abc', 'Host', 'x', 'Authorization', 'Bearer xyz'], twice],
    ['two headers in another case', ['AUTHORIZATION', 'Bearer abc', 'authorization', 'Bearer abc'], twice],
    ['no header at all', [], 'abc'],
  ])('counts the headers as they came: %s', (_what, rawHeaders, expected) => {
    expect(detailOf({ ...withHeader('Bearer abc'), rawHeaders })).toEqual(expected);
  });

  const form = 'application/x-www-form-urlencoded';
  it.each<[string, string | undefined, unknown, unknown]>([
    ['null', form, null, 'abc'],
    ['a number', form, 17, 'abc'],
    ['an empty object', form, {}, 'abc'],
    ['a member among others', form, { a: 1, access_token: 'x' }, ['token_in_body', undefined]],
    ['a percent sign and no token', form, 'note=100%25', 'abc'],
    ['an encoded name', form, 'a=1&%61ccess_token=x', ['token_in_body', undefined]],
    ['bytes beyond ASCII', form, Buffer.from('caf\u00e9=1&access_token=x'), ['token_in_body', undefined]],
    ['parameters after a blank', `${form} ; charset=utf-8`, 'access_token=x', ['token_in_body', undefined]],
    ['a type that begins alike', `${form}-not`, 'access_token=x', 'abc'],
    ['a type that contains it', `text/plain; was=${form}`, 'access_token=x', 'abc'],
    ['no type', undefined, 'access_token=x', 'abc'],
  ])('looks into form bodies alone: %s', (_what, type, body, expected) => {
    const headers = { authorization: 'Bearer abc', 'content-type': type };
    expect(detailOf({ headers, body })).toEqual(expected);
  });

  it.each([
    ['/v1/orders', 'abc'],
    ['/v1/access_token=x', 'abc'],
    ['access_token=x', 'abc'],
    ['?', 'abc'],
    ['/v1/orders?note=%25', 'abc'],
    ['?access_token=x', ['token_in_query', undefined]],
    ['/v1/orders?a=b?c&access_token', ['token_in_query', undefined]],
  ])('looks into the query alone: %s', (url, expected) => {
    expect(detailOf({ ...withHeader('Bearer abc'), url })).toEqual(expected);
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
      expect((error as AuthError).privateDetail).toBe('the header is not a strict JSON object');
      expect((error as AuthError).cause).toBeUndefined();
    }
  });
});

describe('headers that Node may have dropped', () => {
  const outcome = (length: number, server?: object): string => {
    const headers = { authorization: 'Bearer abc' };
    const rawHeaders = ['Authorization', 'Bearer abc', ...Array<string>(length - 2).fill('x')];
    try {
      return bearerToken({ headers, rawHeaders, socket: server && { server } });
    } catch (error) {
      return (error as AuthError).privateDetail ?? '';
    }
  };
  const DROPPED = 'Node may have dropped headers';

  it.each([
    [1_998, undefined, 'abc'],
    [2_000, undefined, DROPPED],
    [1_998, {}, 'abc'],
    [2_000, { maxHeadersCount: null }, DROPPED],
    [38, { maxHeadersCount: 20 }, 'abc'],
    [40, { maxHeadersCount: 20 }, DROPPED],
    [6_000, { maxHeadersCount: 0 }, 'abc'],
  ])('%i names and values, server %j: %s', (length, server, expected) => {
    expect(outcome(length, server)).toBe(expected);
  });
});

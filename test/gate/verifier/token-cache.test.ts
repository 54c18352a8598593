import { randomBytes } from 'node:crypto';
import { TokenCache } from '../../../src/gate/verifier/token-cache';
import type { UnverifiedToken } from '../../../src/gate/token/jws';

function tokenOf(raw: string, signature = randomBytes(64)): UnverifiedToken {
  return { raw, header: {}, claims: {}, signingInput: '', signature };
}

describe('TokenCache', () => {
  it('keeps a value from the second use on', () => {
    const cache = new TokenCache<object>(10);
    const [token, first, second] = [tokenOf('a'), {}, {}];
    cache.set(token, first);
    expect(cache.get('a')).toBeUndefined();
    cache.set(token, second);
    expect(cache.get('a')).toBe(second);
  });

  it('keeps what comes again while 10,000 others come once', () => {
    const cache = new TokenCache<object>(2);
    const [token, value] = [tokenOf('a'), {}];
    cache.set(token, value);
    cache.set(token, value);
    for (let index = 0; index < 10_000; index++) cache.set(tokenOf(`once-${index}`), {});
    expect(cache.get('a')).toBe(value);
  });

  it('holds no more than it may: the one that was not asked for the longest time goes', () => {
    const cache = new TokenCache<object>(2);
    const tokens = ['a', 'b', 'c'].map((raw) => tokenOf(raw));
    for (const token of [...tokens, ...tokens]) cache.set(token, {});
    expect(tokens.map(({ raw }) => cache.get(raw) !== undefined)).toEqual([false, true, true]);
  });

  it('keeps both of two tokens that are used by turns, whatever their signatures begin with', () => {
    const cache = new TokenCache<object>(10);
    const beginning = Buffer.from('00000001', 'hex');
    const tokens = ['a', 'b'].map((raw) => tokenOf(raw, Buffer.concat([beginning, randomBytes(60)])));
    for (const token of [...tokens, ...tokens]) cache.set(token, token);
    expect(tokens.map(({ raw }) => cache.get(raw))).toEqual(tokens);
  });

  it('tells two tokens apart whose signatures begin alike', () => {
    const cache = new TokenCache<object>(10);
    const signature = randomBytes(64);
    const value = {};
    cache.set(tokenOf('a', signature), {});
    cache.set(tokenOf('b', signature), value);
    expect([cache.get('a'), cache.get('b')]).toEqual([undefined, value]);
  });

  it('knows a token by all of its text: one that ends alike is another', () => {
    const cache = new TokenCache<object>(10);
    const ending = randomBytes(256).toString('base64url');
    const [token, value] = [tokenOf(`header.claims.${ending}`), {}];
    for (let times = 0; times < 2; times++) cache.set(token, value);
    expect(cache.get(`header.claimz.${ending}`)).toBeUndefined();
    expect(cache.get(ending)).toBeUndefined();
    expect(cache.get(`header.claims.${ending}`)).toBe(value);
  });

  it('forgets what it is told to', () => {
    const cache = new TokenCache<object>(10);
    const raw = `header.claims.${randomBytes(64).toString('base64url')}`;
    const token = tokenOf(raw);
    for (let times = 0; times < 2; times++) cache.set(token, {});
    expect(cache.get(raw)).toBeDefined();
    cache.delete(raw);
    expect(cache.get(raw)).toBeUndefined();
  });
});

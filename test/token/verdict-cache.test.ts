import { randomBytes } from 'node:crypto';
import type { UnverifiedToken } from '../../src/token/jws';
import { verdictCache } from '../../src/token/verdict-cache';

function tokenOf(raw: string, signature = randomBytes(64)): UnverifiedToken {
  return { raw, header: {}, claims: {}, signingInput: '', signature };
}

describe('verdictCache', () => {
  it('remembers a verdict from the second time on', () => {
    const cache = verdictCache<object>(10);
    const [token, first, second] = [tokenOf('a'), {}, {}];
    cache.set(token, first);
    expect(cache.get('a')).toBeUndefined();
    cache.set(token, second);
    expect(cache.get('a')).toBe(second);
  });

  it('keeps what comes again while 100,000 others come once', () => {
    const cache = verdictCache<object>(2);
    const [token, verdict] = [tokenOf('a'), {}];
    cache.set(token, verdict);
    cache.set(token, verdict);
    for (let index = 0; index < 100_000; index++) cache.set(tokenOf(`once-${index}`), {});
    expect(cache.get('a')).toBe(verdict);
  });

  it('holds no more than it may: the one that was not asked for the longest time goes', () => {
    const cache = verdictCache<object>(2);
    const tokens = ['a', 'b', 'c'].map((raw) => tokenOf(raw));
    for (const token of [...tokens, ...tokens]) cache.set(token, {});
    expect(tokens.map(({ raw }) => cache.get(raw) !== undefined)).toEqual([false, true, true]);
  });

  it('tells two tokens apart whose signatures begin alike', () => {
    const cache = verdictCache<object>(10);
    const signature = randomBytes(64);
    const verdict = {};
    cache.set(tokenOf('a', signature), {});
    cache.set(tokenOf('b', signature), verdict);
    expect([cache.get('a'), cache.get('b')]).toEqual([undefined, verdict]);
  });

  it('knows a token by all of its text: one that ends alike is another', () => {
    const cache = verdictCache<object>(10);
    const ending = randomBytes(256).toString('base64url');
    const [token, verdict] = [tokenOf(`header.claims.${ending}`), {}];
    for (let times = 0; times < 2; times++) cache.set(token, verdict);
    expect(cache.get(`header.claimz.${ending}`)).toBeUndefined();
    expect(cache.get(ending)).toBeUndefined();
    expect(cache.get(`header.claims.${ending}`)).toBe(verdict);
  });

  it('forgets what it is told to', () => {
    const cache = verdictCache<object>(10);
    const token = tokenOf('a');
    for (let times = 0; times < 2; times++) cache.set(token, {});
    cache.delete('a');
    expect(cache.get('a')).toBeUndefined();
  });
});

import { isScopeToken, readScopes } from '../../src/token/scopes';

describe('readScopes', () => {
  it.each<[string, Record<string, unknown>, readonly string[], readonly string[]]>([
    ['none of the named claims', { roles: 'a' }, ['scope'], []],
    ['a claim named undefined, which is not asked for', { undefined: 'a' }, ['scope'], []],
    ['a claim that only the prototype has', Object.create({ scope: 'a' }) as Record<string, unknown>, ['scope'], []],
    ['two of the named claims: the first counts', { scope: 'b', scp: 'a' }, ['scp', 'scope'], ['a']],
    [
      'a first claim that is not a list of scopes: the second is not looked at',
      { scp: 17, scope: 'a' },
      ['scp', 'scope'],
      [],
    ],
    ['an array with something else than strings', { scope: ['a', 17] }, ['scope'], []],
    ['an object', { scope: { a: true } }, ['scope'], []],
    ['null', { scope: null }, ['scope'], []],
  ])('reads %s', (_what, claims, names, scopes) => {
    expect(readScopes(claims, names)).toEqual(scopes);
  });
});

it.each([
  ['!', true],
  ['#', true],
  ['[', true],
  [']', true],
  ['~', true],
  ['orders:read', true],
  ['', false],
  [' ', false],
  ['"', false],
  ['\\', false],
  ['\x7f', false],
  [' a', false],
  ['a ', false],
  ['a\n', false],
])('isScopeToken(%j) is %s (RFC 6749 section 3.3)', (text, expected) => {
  expect(isScopeToken(text)).toBe(expected);
});

it('readScopes() splits a string at blanks and drops empty and repeated scopes', () => {
  expect(readScopes({ scope: 'a  b a ' }, ['scope'])).toEqual(['a', 'b']);
  expect(readScopes({ scp: ['a', '', 'a', 'b'] }, ['scp'])).toEqual(['a', 'b']);
});

import { isScopeToken, scopeReader, SCOPES_OPTION } from '../../../src/gate/token/scopes';
import type { ScopeRule } from '../../../src/gate/token/scopes';

describe('scopeReader() without a rule', () => {
  it.each<[string, Record<string, unknown>, readonly string[], readonly string[]]>([
    ['none of the named claims', { roles: 'a' }, ['scope'], []],
    ['a claim named undefined, which is not asked for', { undefined: 'a' }, ['scope'], []],
    ['two of the named claims: the first counts', { scope: 'b', scp: 'a' }, ['scp', 'scope'], ['a']],
    ['no second claim where the first is not a list of scopes', { scp: 17, scope: 'a' }, ['scp', 'scope'], []],
    ['an array whose entry has a blank', { scope: ['a', 'b c'] }, ['scope'], ['a', 'b c']],
    ['an array with something else than strings', { scope: ['a', 17] }, ['scope'], []],
    ['an object', { scope: { a: true } }, ['scope'], []],
    ['null', { scope: null }, ['scope'], []],
  ])('reads %s', (_what, claims, names, scopes) => {
    expect(scopeReader(names)(claims)).toEqual(scopes);
  });
});

it.each(['!', '#', '[', ']', '~', 'orders:read'])('%j is a scope (RFC 6749 section 3.3)', (text) => {
  expect(isScopeToken(text)).toBe(true);
});

it.each(['', ' ', '"', '\\', '\x7f', ' a', 'a ', 'a\n'])('%j is not a scope', (text) => {
  expect(isScopeToken(text)).toBe(false);
});

it('scopeReader() splits a string at blanks and drops empty and repeated scopes', () => {
  expect(scopeReader(['scope'])({ scope: 'a  b a ' })).toEqual(['a', 'b']);
  expect(scopeReader(['scp'])({ scp: ['a', '', 'a', 'b'] })).toEqual(['a', 'b']);
});

type Claims = Readonly<Record<string, unknown>>;
const scopesOf = (rule: Partial<ScopeRule>, claims: Claims, preset = ['scope']): readonly string[] =>
  scopeReader(preset, { from: undefined, map: undefined, ...rule })(claims);

describe('scopeReader(): where the names are', () => {
  const keycloak = {
    scope: 'profile',
    realm_access: { roles: ['till', 'cook'] },
    resource_access: { 'shop.api': { roles: ['order'] }, account: { roles: ['view'] } },
  };
  it.each<[string, readonly (readonly string[])[], Claims, readonly string[]]>([
    ['one claim', [['scope']], keycloak, ['profile']],
    ['a nested claim', [['realm_access', 'roles']], keycloak, ['till', 'cook']],
    ['a member with a dot in its name', [['resource_access', 'shop.api', 'roles']], keycloak, ['order']],
    ['several claims, in their order', [['realm_access', 'roles'], ['scope']], keycloak, ['till', 'cook', 'profile']],
    ['a name in two claims once', [['a'], ['b']], { a: 'x y', b: ['y', 'x', 'z'] }, ['x', 'y', 'z']],
    ['a claim named like a URL', [['https://a.test/roles']], { 'https://a.test/roles': ['x'] }, ['x']],
    ['nothing where a path ends early', [['realm_access']], keycloak, []],
    ['nothing where a path leads on', [['scope', 'roles']], keycloak, []],
    ['nothing in an array', [['a', '0']], { a: ['x'] }, []],
    ['nothing below null', [['a', 'b']], { a: null }, []],
    ['nothing of __proto__', [['__proto__', 'roles']], {}, []],
    ['nothing of the constructor', [['constructor', 'name']], {}, []],
    ['an own member of that name', [['__proto__']], JSON.parse('{"__proto__":"x"}') as Claims, ['x']],
    ['the other claims where one is not a list of names', [['a'], ['b']], { a: [{}], b: 'x' }, ['x']],
    ['nothing in an array with a nested array', [['a']], { a: ['x', ['y']] }, []],
    ['no name that is not a scope', [['a']], { a: ['Store Manager', 'a"b', 'gr\u00f6\u00dfe', 'x\n', 'x'] }, ['x']],
  ])('reads %s', (_what, from, claims, expected) => {
    expect(scopesOf({ from: from.map((path) => ({ path, prefix: '' })) }, claims)).toEqual(expected);
  });

  it('puts a prefix before each name of a claim, so that those of two claims stay apart', () => {
    const from = [
      { path: ['realm_access', 'roles'], prefix: 'realm:' },
      { path: ['resource_access', 'shop', 'roles'], prefix: 'shop:' },
    ];
    const claims = {
      realm_access: { roles: ['till', 'a b'] },
      resource_access: { shop: { roles: ['admin', 'till'] } },
    };
    expect(scopesOf({ from }, claims)).toEqual(['realm:till', 'shop:admin', 'shop:till']);
    const map = new Map([['shop:admin', ['orders:write']]]);
    expect(scopesOf({ from, map }, claims)).toEqual(['orders:write']);
  });

  it('reads the claim of the preset, the first that is present, where the rule names none', () => {
    const map = new Map([['a', ['x']]]);
    expect(scopesOf({ map }, { scope: 'b', scp: 'a' }, ['scp', 'scope'])).toEqual(['x']);
    expect(scopesOf({ map }, { scope: 'a', scp: 'b' }, ['scp', 'scope'])).toEqual([]);
  });

  it('reads a list of ten thousand names', () => {
    const roles = Array.from({ length: 10_000 }, (_, index) => `r${index}`);
    expect(scopesOf({ from: [{ path: ['roles'], prefix: '' }] }, { roles })).toEqual(roles);
  });
});

describe('scopeReader(): what the names grant', () => {
  const map = new Map<string, readonly string[]>([
    ['Store Manager', ['orders:read', 'orders:write']],
    ['till', ['orders:read']],
    ['nothing', []],
  ]);
  it.each<[string, readonly string[], readonly string[]]>([
    ['one to many', ['Store Manager'], ['orders:read', 'orders:write']],
    ['many to one, once', ['till', 'Store Manager', 'till'], ['orders:read', 'orders:write']],
    ['nothing for a name that is not in the map', ['orders:write', 'admin'], []],
    ['nothing for another case', ['TILL', 'store manager'], []],
    ['nothing for a name with blanks around it', [' till', 'till '], []],
    ['nothing for names of every object', ['__proto__', 'constructor', 'toString', 'get'], []],
    ['nothing for a name that is mapped to nothing', ['nothing'], []],
  ])('maps %s', (_what, roles, expected) => {
    expect(scopesOf({ from: [{ path: ['roles'], prefix: '' }], map }, { roles })).toEqual(expected);
  });
});

const read = (options: unknown): ReturnType<typeof SCOPES_OPTION.read> =>
  SCOPES_OPTION.read(options, { factory: 'authenticate', name: 'scopes' });

describe('the option scopes', () => {
  it.each<[unknown, unknown]>([
    [{ from: ['scope'] }, [['scope']]],
    [{ from: ['realm_access.roles', 'scp'] }, [['realm_access', 'roles'], ['scp']]],
    [{ from: [['https://example.com/roles']] }, [['https://example.com/roles']]],
    [{ from: [['https://example.com/app', 'roles']] }, [['https://example.com/app', 'roles']]],
    [{ from: [['resource_access', 'shop.api', 'roles']] }, [['resource_access', 'shop.api', 'roles']]],
    [{ from: ['urn:roles', 'a/b'] }, [['urn:roles'], ['a/b']]],
  ])('reads claims and paths: %j', (options, from) => {
    expect(read(options)).toEqual({ from: (from as string[][]).map((path) => ({ path, prefix: '' })), map: undefined });
  });

  it('reads a prefix', () => {
    const from = [
      { claim: 'realm_access.roles', prefix: 'realm:' },
      { claim: ['resource_access', 'shop.api', 'roles'], prefix: 'shop:' },
    ];
    expect(read({ from })).toEqual({
      from: [
        { path: ['realm_access', 'roles'], prefix: 'realm:' },
        { path: ['resource_access', 'shop.api', 'roles'], prefix: 'shop:' },
      ],
      map: undefined,
    });
  });

  it('reads a map, one to many, by its own members', () => {
    const inherited = Object.create({ admin: 'all' }) as Record<string, unknown>;
    const map = Object.assign(inherited, { till: 'orders:read', cook: ['orders:read', 'kitchen:read'], none: [] });
    expect(read({ map })).toEqual({
      from: undefined,
      map: new Map([
        ['till', ['orders:read']],
        ['cook', ['orders:read', 'kitchen:read']],
        ['none', []],
      ]),
    });
  });

  it('does not follow what is changed afterwards', () => {
    const options = { from: [['roles']], map: { till: ['orders:read'] } };
    const rule = read(options);
    options.from[0]![0] = 'other';
    options.map.till.push('orders:write');
    expect(rule).toEqual({ from: [{ path: ['roles'], prefix: '' }], map: new Map([['till', ['orders:read']]]) });
  });

  const path = 'option "scopes.from" must be an array of claims: names, or paths such as "realm_access.roles", got';
  const map = 'option "scopes.map" must be an object with the scopes of each name, got';
  const scope = (name: string): string =>
    `option "scopes.map["${name}"]" must be a scope without blanks, or an array of them, got`;
  it.each<[unknown, string]>([
    ['roles', 'option "scopes" must be an object, got "roles"'],
    [null, 'option "scopes" must be an object, got null'],
    [['roles'], 'option "scopes" must be an object, got an array of 1'],
    [{}, 'option "scopes" must be an object with from, map or both, got an object'],
    [{ form: ['roles'] }, 'unknown option "scopes.form"; did you mean "from"?'],
    [{ from: 'roles' }, 'option "scopes.from" must be a non-empty array of claims, got "roles"'],
    [{ from: [] }, 'option "scopes.from" must be a non-empty array of claims, got an empty array'],
    [{ from: null }, 'option "scopes.from" must be a non-empty array of claims, got null'],
    [{ from: [''] }, `${path} ""`],
    [{ from: ['realm_access..roles'] }, `${path} "realm_access..roles"`],
    [{ from: ['.roles'] }, `${path} ".roles"`],
    [{ from: [17] }, `${path} 17`],
    [{ from: [{ claim: 'a..b', prefix: 'x:' }] }, `${path} "a..b"`],
    [{ from: [{ prefix: 'x:' }] }, `${path} undefined`],
    ...[
      { claim: 'a' },
      { claim: 'a', prefix: '' },
      { claim: 'a', prefix: 'x y' },
      { claim: 'a', prefix: 'x:', to: 1 },
    ].map((claim): [unknown, string] => [
      { from: [claim] },
      'option "scopes.from" must be claims as { claim: "realm_access.roles", prefix: "realm:" }, got an object',
    ]),
    [{ from: [[]] }, `${path} an empty array`],
    [{ from: [['realm_access', 17]] }, `${path} an array of 2`],
    [{ from: [['']] }, `${path} an array of 1`],
    [
      { from: ['https://example.com/roles'] },
      'option "scopes.from" must be an array of claims; write ["https://example.com/roles"] for one whose own name contains dots, got "https://example.com/roles"',
    ],
    [{ map: {} }, `${map} an object`],
    [{ map: new Map([['a', 'b']]) }, `${map} an object`],
    [{ map: ['a'] }, `${map} an array of 1`],
    [{ map: () => ['a'] }, `${map} a function`],
    [{ map: null }, `${map} null`],
    [{ map: { till: 'orders:read orders:write' } }, `${scope('till')} "orders:read orders:write"`],
    [{ map: { till: '' } }, `${scope('till')} ""`],
    [{ map: { till: true } }, `${scope('till')} true`],
    [{ map: { till: undefined } }, `${scope('till')} undefined`],
    [{ map: { till: ['a', 17] } }, `${scope('till')} an array of 2`],
    [{ map: { till: ['a', , 'b'] } }, `${scope('till')} an array of 3`], // eslint-disable-line no-sparse-arrays -- a hole
  ])('refuses %j', (options, message) => {
    expect(() => read(options)).toThrow(new TypeError(`authenticate(): ${message}`));
  });
});

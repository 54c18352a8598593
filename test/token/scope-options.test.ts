import { SCOPES_OPTION } from '../../src/token/scopes';

const read = (options: unknown): ReturnType<typeof SCOPES_OPTION.read> =>
  SCOPES_OPTION.read(options, { factory: 'authenticate', name: 'scopes' });

describe('the option scopes', () => {
  it.each<[unknown, unknown]>([
    [{ from: ['scope'] }, [['scope']]],
    [{ from: ['realm_access.roles', 'scp'] }, [['realm_access', 'roles'], ['scp']]],
    [{ from: [['https://example.com/roles']] }, [['https://example.com/roles']]],
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
    [{ map: {} }, 'option "scopes.map" must be a function, or an object with the scopes of each name, got an object'],
    [
      { map: new Map([['a', 'b']]) },
      'option "scopes.map" must be a function, or an object with the scopes of each name, got an object',
    ],
    [
      { map: ['a'] },
      'option "scopes.map" must be a function, or an object with the scopes of each name, got an array of 1',
    ],
    [{ map: null }, 'option "scopes.map" must be a function, or an object with the scopes of each name, got null'],
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

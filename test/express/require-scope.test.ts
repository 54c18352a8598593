import { requirementOf } from '../../src/express/guard';
import { isGranted } from '../../src/gate/scope-requirement';
import { requireAuthenticated, requireClaim, requireScope } from '../../src';
import { gateApp } from '../support/gate-app';
import { token } from '../support/issuer';

describe('requireScope(): its arguments', () => {
  it.each([
    [requireScope('a'), { allOf: ['a'] }],
    [requireScope('a', 'b', 'a'), { allOf: ['a', 'b'] }],
    [requireScope(['a', 'b']), { allOf: ['a', 'b'] }],
    [requireScope({ anyOf: ['a', 'b'] }), { anyOf: ['a', 'b'] }],
  ])('shows what it asks for, frozen: %#', (guard, requirement) => {
    expect(requirementOf(guard)).toEqual(requirement);
    expect(Object.isFrozen(requirementOf(guard))).toBe(true);
    expect(Object.values(requirementOf(guard) ?? {}).every(Object.isFrozen)).toBe(true);
  });

  it('is a named function and leaves its argument alone', () => {
    const scopes = Object.freeze(['a', 'b']);
    expect(requireScope(scopes).name).toBe('requireScope');
    expect(requirementOf(requireScope(Object.freeze({ anyOf: scopes })))).toEqual({ anyOf: ['a', 'b'] });
  });

  it('does not follow an array that is changed afterwards', () => {
    const scopes = ['a', 'b'];
    const guard = requireScope(scopes);
    scopes.length = 0;
    expect(requirementOf(guard)).toEqual({ allOf: ['a', 'b'] });
  });

  const least = 'requireScope(): expected at least one scope, got';
  const grammar = 'requireScope(): expected a scope without blanks, quotes and backslashes, got';
  it.each<[string, readonly unknown[], string]>([
    ['nothing', [], `${least} an empty array`],
    ['an empty array', [[]], `${least} an empty array`],
    ['an empty anyOf', [{ anyOf: [] }], `${least} an empty array`],
    ['anyOf that is not an array', [{ anyOf: 'a' }], `${least} "a"`],
    ['no anyOf', [{}], 'requireScope(): expected { anyOf: [...] }'],
    ['allOf', [{ allOf: ['a'] }], 'requireScope(): expected { anyOf: [...] }'],
    ['anyOf next to something else', [{ anyOf: ['a'], allOf: ['b'] }], 'requireScope(): expected { anyOf: [...] }'],
    ['undefined', [undefined], `${grammar} undefined`],
    ['null', [null], `${grammar} null`],
    ['a number', [17], `${grammar} 17`],
    ['an empty string', [''], `${grammar} ""`],
    ['two scopes in one string', ['a b'], `${grammar} "a b"`],
    ['a quote', ['a"b'], `${grammar} "a\\"b"`],
    ['a backslash', ['a\\b'], `${grammar} "a\\\\b"`],
    ['a letter beyond ASCII', ['größe'], `${grammar} "größe"`],
    ['a line break', ['a\nb'], `${grammar} "a\\nb"`],
    ['an array among strings', ['a', ['b']], `${grammar} an array of 1`],
    ['a string after an array', [['a'], 'b'], `${grammar} an array of 1`],
    ['a string after anyOf', [{ anyOf: ['a'] }, 'b'], `${grammar} an object`],
  ])('refuses %s at construction', (_what, args, message) => {
    const make = requireScope as (...scopes: readonly unknown[]) => unknown;
    expect(() => make(...args)).toThrow(new TypeError(message));
  });
});

describe('requireClaim(): its arguments', () => {
  it.each<[string, readonly unknown[], string]>([
    ['no name', [undefined, () => true], 'requireClaim(): expected the name of a claim, got undefined'],
    ['an empty name', ['', () => true], 'requireClaim(): expected the name of a claim, got ""'],
    ['no test', ['store'], 'requireClaim(): expected a test function, got undefined'],
    ['a value in place of a test', ['store', 'berlin-1'], 'requireClaim(): expected a test function, got "berlin-1"'],
  ])('refuses %s at construction', (_what, args, message) => {
    const make = requireClaim as (...args: readonly unknown[]) => unknown;
    expect(() => make(...args)).toThrow(new TypeError(message));
  });

  it('shows which claim it looks at, and is a named function', () => {
    const guard = requireClaim('store', () => true);
    expect([requirementOf(guard), guard.name]).toEqual([{ claim: 'store' }, 'requireClaim']);
  });
});

describe('requireAuthenticated()', () => {
  it('is a named function', () => {
    expect(requireAuthenticated().name).toBe('requireAuthenticated');
  });
});

it.each<[string, (value: unknown) => unknown, string | undefined]>([
  ['true', () => true, undefined],
  ['false', () => false, 'claim store'],
  ['null', () => null, 'claim store'],
  ['nothing', () => undefined, 'claim store'],
  ['something that is only true in a condition', () => 1, 'claim store'],
])('requireClaim() decides immediately about a test that returns %s', async (_what, test, detail) => {
  const guard = requireClaim('store', test as () => boolean);
  const decided: string[] = [];
  const through = gateApp({
    unguarded: 'allow',
    routes: (app) =>
      void app.get('/v1/orders', (req, res) => {
        guard(req, res, () => void decided.push('passed'));
        decided.push('returned');
        if (!res.headersSent) res.end();
      }),
  });
  await through.get(token());
  expect(decided).toEqual(detail === undefined ? ['passed', 'returned'] : ['returned']);
  expect(through.decisions.at(-1)?.error?.privateDetail).toBe(detail);
});

it.each([1, 2, 16, 17, 1_000])('isGranted() finds each of %d scopes, and nothing that only looks like one', (count) => {
  const granted = Array.from({ length: count }, (_, index) => `orders:${index}`);
  for (const scope of granted) expect(isGranted(granted, scope)).toBe(true);
  for (const scope of ['orders', 'orders:', `orders:${count}`, 'orders:0 ', 'ORDERS:0', '']) {
    expect(isGranted(granted, scope)).toBe(false);
  }
});

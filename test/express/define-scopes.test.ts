import { defineScopes, requireScope } from '../../src';
import { requirementOf } from '../../src/express/guard';
import { gateApp } from '../support/gate-app';
import { token } from '../support/issuer';
import { expectRefusal } from '../support/refusals';

const shop = defineScopes(['orders:read', 'orders:write', 'constructor']);

describe('defineScopes()', () => {
  it('lists the scopes, each once, frozen', () => {
    expect(defineScopes(['a', 'b', 'a'] as string[]).scopes).toEqual(['a', 'b']);
    expect(Object.isFrozen(shop.scopes)).toBe(true);
  });

  it('does not follow an array that is changed afterwards', () => {
    const list = ['a'];
    const { requireScope: guardFor } = defineScopes(list);
    list.push('b');
    expect(() => guardFor('b')).toThrow(TypeError);
  });

  it('makes the guards of requireScope()', () => {
    expect(
      [
        shop.requireScope('orders:read', 'orders:write'),
        shop.requireScope(['constructor']),
        shop.requireScope({ anyOf: ['orders:read', 'orders:write'] }),
      ].map(requirementOf),
    ).toEqual([
      requirementOf(requireScope('orders:read', 'orders:write')),
      requirementOf(requireScope(['constructor'])),
      requirementOf(requireScope({ anyOf: ['orders:read', 'orders:write'] })),
    ]);
  });

  it('its guards allow and refuse requests', async () => {
    const through = gateApp({
      routes: (app, reach) => void app.get('/v1/orders', shop.requireScope('orders:read'), reach),
    });
    await through.get(token({ claims: { scope: 'orders:read' } })).expect(200);
    through.reached.length = 0;
    const refused = await through.get(token({ claims: { scope: 'orders:write' } }));
    expectRefusal(refused, 'insufficient_scope', through, { scopes: ['orders:read'] });
  });

  const meant = 'is not one of the defined scopes; did you mean "orders:read"?';
  it.each<[string, readonly unknown[], string]>([
    ['a misspelt scope', ['ordrs:read'], `requireScope(): "ordrs:read" ${meant}`],
    ['another case', ['Orders:read'], `requireScope(): "Orders:read" ${meant}`],
    ['the second of two', ['orders:write', 'ordrs:read'], `requireScope(): "ordrs:read" ${meant}`],
    ['one in an array', [['ordrs:read']], `requireScope(): "ordrs:read" ${meant}`],
    ['one of anyOf', [{ anyOf: ['orders:write', 'ordrs:read'] }], `requireScope(): "ordrs:read" ${meant}`],
    [
      'a name of every object',
      ['toString'],
      'requireScope(): "toString" is not one of the defined scopes; known are orders:read, orders:write, constructor',
    ],
    ['nothing', [], 'requireScope(): expected at least one scope, got an empty array'],
    [
      'two scopes in one string',
      ['orders:read orders:write'],
      'requireScope(): expected a scope without blanks, quotes and backslashes, got "orders:read orders:write"',
    ],
  ])('its requireScope() refuses %s at construction', (_what, args, message) => {
    const make = shop.requireScope as (...given: readonly unknown[]) => unknown;
    expect(() => make(...args)).toThrow(new TypeError(message));
  });

  it.each<[string, unknown, string]>([
    ['nothing', undefined, 'at least one scope, got undefined'],
    ['an empty array', [], 'at least one scope, got an empty array'],
    ['a string', 'orders:read', 'at least one scope, got "orders:read"'],
    ['a number', ['a', 17], 'a scope without blanks, quotes and backslashes, got 17'],
    ['two scopes in one string', ['a b'], 'a scope without blanks, quotes and backslashes, got "a b"'],
  ])('refuses %s', (_what, scopes, expected) => {
    expect(() => defineScopes(scopes as string[])).toThrow(new TypeError(`defineScopes(): expected ${expected}`));
  });
});

import { defineScopes } from '../../src';
import { gateApp } from '../support/gate-app';
import type { GateApp } from '../support/gate-app';
import { NOW_MS, token } from '../support/issuer';
import { expectRefusal } from '../support/refusals';

const DAY_MS = 86_400_000;
const dayIn = (days: number): string => new Date(NOW_MS + days * DAY_MS).toISOString().slice(0, 10);

const shop = defineScopes({
  'orders:admin': { implies: ['orders:write', 'orders:cancel'] },
  'orders:write': { implies: ['orders:read'] },
  'order.read': { replacedBy: 'orders:read', until: dayIn(2), since: dayIn(-10) },
  'order.all': { replacedBy: 'orders:write', until: dayIn(2) },
  'order.old': { replacedBy: 'orders:read', until: dayIn(0) },
});

type Current = (typeof shop.scopes)[number];
function appRequiring(first: Current | { readonly anyOf: readonly Current[] }, ...others: readonly Current[]): GateApp {
  const guard = typeof first === 'string' ? shop.requireScope(first, ...others) : shop.requireScope(first);
  return gateApp({ routes: (app, reach) => app.get('/v1/orders', guard, reach) });
}
const withScope = (scope: string): string => token({ claims: { scope } });

describe('defineScopes() with an object', () => {
  it('lists the current names, those that are only implied too', () => {
    expect(shop.scopes).toEqual(['orders:admin', 'orders:write', 'orders:cancel', 'orders:read']);
  });

  it.each(['orders:read', 'orders:write', 'orders:admin', 'order.read', 'order.all', 'menus:read order.all'])(
    'a token with %s is enough for orders:read',
    async (scope) => {
      expect((await appRequiring('orders:read').get(withScope(scope))).status).toBe(200);
    },
  );

  it.each([
    ['orders:write', 'orders:read'],
    ['orders:write', 'order.read'],
    ['orders:cancel', 'orders:write'],
    ['orders:read', 'order.old'],
    ['orders:read', 'order'],
    ['orders:admin', 'orders:read orders:write orders:cancel'],
  ] as const)('for %s a token with %s is not', async (required, scope) => {
    const through = appRequiring(required);
    expectRefusal(await through.get(withScope(scope)), 'insufficient_scope', through, { scopes: [required] });
  });

  it('counts for anyOf and for several scopes alike', async () => {
    expect(
      (await appRequiring({ anyOf: ['orders:cancel', 'orders:read'] }).get(withScope('orders:write'))).status,
    ).toBe(200);
    expect((await appRequiring('orders:cancel', 'orders:read').get(withScope('orders:admin'))).status).toBe(200);
    expect((await appRequiring('orders:cancel', 'orders:read').get(withScope('orders:write'))).status).toBe(403);
  });

  it('says when an old name ends, only to a token that needs it', async () => {
    const through = appRequiring('orders:read');
    const old = await through.get(withScope('order.read'));
    const since = Date.parse(dayIn(-10)) / 1000;
    expect([old.headers['deprecation'], old.headers['sunset']]).toEqual([
      `@${since}`,
      new Date(dayIn(2)).toUTCString(),
    ]);
    for (const scope of ['orders:read', 'orders:write', 'order.read orders:write', 'order.read orders:read']) {
      const { headers } = await through.get(withScope(scope));
      expect([headers['deprecation'], headers['sunset']]).toEqual([undefined, undefined]);
    }
  });

  it('says nothing where another alternative is held by its current name', async () => {
    const { headers } = await appRequiring({ anyOf: ['orders:read', 'orders:cancel'] }).get(
      withScope('order.read orders:cancel'),
    );
    expect(headers).not.toHaveProperty('sunset');
  });

  it('refuses an old name from its day on', async () => {
    let now = Date.parse(dayIn(2)) - 1;
    const through = gateApp({
      clock: () => now,
      maxTokenAgeSeconds: 10 * 86_400,
      routes: (app, reach) => app.get('/v1/orders', shop.requireScope('orders:read'), reach),
    });
    const raw = token({ claims: { scope: 'order.read', exp: NOW_MS / 1000 + 5 * 86_400 } });
    expect((await through.get(raw)).status).toBe(200);
    now += 1;
    expect((await through.get(raw)).status).toBe(403);
  });

  it('does not let a route require an old name, or one that is not declared', () => {
    const requireScope = shop.requireScope as (scope: string) => unknown;
    expect(() => requireScope('order.read')).toThrow(
      new TypeError(
        'requireScope(): "order.read" is an old name; require "orders:read", which accepts it until it ends',
      ),
    );
    expect(() => requireScope('orders:raed')).toThrow('is not one of the defined scopes; did you mean "orders:read"?');
  });

  it.each<[string, object, string]>([
    ['nothing', {}, 'expected at least one scope, got an empty array'],
    ['a bad name', { 'a b': {} }, 'expected a scope without blanks, quotes and backslashes, got "a b"'],
    ['no object', { a: ['b'] }, '"a": expected an object such as { implies: [...] }, got an array'],
    ['an unknown member', { a: { implys: ['b'] } }, '"a": unknown member "implys"; did you mean "implies"?'],
    ['implying nothing', { a: { implies: [] } }, '"a": implies: expected at least one scope, got an empty array'],
    ['itself', { a: { implies: ['a'] } }, 'a implies a: a circle; remove one of them'],
    [
      'a circle',
      { a: { implies: ['b'] }, b: { implies: ['c'] }, c: { implies: ['a'] } },
      'a implies b implies c implies a: a circle',
    ],
    [
      'an old name without its end',
      { a: {}, b: { replacedBy: 'a' } },
      '"b": until: expected a day such as "2027-03-01", got undefined',
    ],
    [
      'no day',
      { a: {}, b: { replacedBy: 'a', until: '2027-02-30' } },
      '"b": until: expected a day such as "2027-03-01", got "2027-02-30"',
    ],
    [
      'a replacement that is not declared',
      { ab: {}, b: { replacedBy: 'ac', until: '2027-03-01' } },
      '"b": replacedBy "ac" is not declared',
    ],
    [
      'a replacement that is old itself',
      { a: {}, b: { replacedBy: 'a', until: '2027-03-01' }, c: { replacedBy: 'b', until: '2027-03-01' } },
      '"c": replacedBy "b" is an old name itself',
    ],
    [
      'nothing but an old name',
      { b: { replacedBy: 'a', until: '2027-03-01' } },
      '"b": replacedBy "a" is not declared; declare it',
    ],
    [
      'an end without a replacement',
      { a: { until: '2027-03-01' } },
      '"a": "until" is for old names, with "replacedBy"',
    ],
    [
      'an old name that implies',
      { a: {}, b: { replacedBy: 'a', implies: ['a'], until: '2027-03-01' } },
      '"b": an old name implies what its replacement does: remove "implies"',
    ],
  ])('refuses %s', (_what, given, message) => {
    expect(() => defineScopes(given as never)).toThrow(TypeError);
    expect(() => defineScopes(given as never)).toThrow(`defineScopes(): ${message}`);
  });
});

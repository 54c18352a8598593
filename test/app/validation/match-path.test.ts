import { pathMatcher } from '../../../src/app/validation/match-path';

const match = pathMatcher(
  ['/v1/inventory/{id}', '/v1/inventory/adjustments', '/v1/orders', '/v1/orders/{id}/cancel'].map(
    (path) => [path, path] as const,
  ),
);

describe('pathMatcher()', () => {
  it.each([
    ['/v1/orders', '/v1/orders', {}],
    ['/v1/orders/', '/v1/orders', {}],
    ['/V1/Orders', '/v1/orders', {}],
    ['/v1/orders/ord_1/cancel', '/v1/orders/{id}/cancel', { id: 'ord_1' }],
    ['/v1/orders/ORD%2F1/cancel/', '/v1/orders/{id}/cancel', { id: 'ORD%2F1' }],
    ['/v1/inventory/inv_1', '/v1/inventory/{id}', { id: 'inv_1' }],
  ])('matches %s with %s', (path, target, parameters) => {
    expect(match(path)).toEqual({ target, parameters });
  });

  it('prefers the concrete path to the template, in any order', () => {
    const reversed = pathMatcher(['/a/b', '/a/{id}', '/{x}/b'].reverse().map((path) => [path, path] as const));
    expect(match('/v1/inventory/adjustments')?.target).toBe('/v1/inventory/adjustments');
    expect([reversed('/a/b')?.target, reversed('/a/c')?.target, reversed('/c/b')?.target]).toEqual([
      '/a/b',
      '/a/{id}',
      '/{x}/b',
    ]);
  });

  it.each([
    '/',
    '',
    '/v1',
    '/v1/orders//',
    '//v1/orders',
    '/v1//orders',
    '/v1/orders/x',
    '/v1/orders//cancel',
    '/v1/order%73',
  ])('does not match %j', (path) => {
    expect(match(path)).toBeUndefined();
  });
});

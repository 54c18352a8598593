import { RESOURCES, routes, SCOPES } from '../../../src/app/commerce/resources';

describe('the table of resources', () => {
  it('has the 15 resources of the design', () => {
    expect(RESOURCES.map(({ path }) => path)).toEqual([
      'locations',
      'items',
      'categories',
      'inventory',
      'price-lists',
      'promotions',
      'customers',
      'orders',
      'payments',
      'menus',
      'modifier-groups',
      'tables',
      'checks',
      'reservations',
      'kitchen-tickets',
    ]);
  });

  it('has 29 scopes, sorted: read and write of 13 families, and three others', () => {
    const families =
      'locations items inventory prices promotions customers orders payments menus tables checks reservations kitchen';
    const readAndWrite = families.split(' ').flatMap((family) => [`${family}:read`, `${family}:write`]);
    const expected = [...readAndWrite, 'customers:pii', 'orders:cancel', 'payments:refund'].sort();
    expect(expected).toHaveLength(29);
    expect(SCOPES).toEqual(expected);
  });

  it.each([
    ['GET', '/v1/categories', 'items:read'],
    ['GET', '/v1/price-lists/{id}', 'prices:read'],
    ['POST', '/v1/modifier-groups', 'menus:write'],
    ['PATCH', '/v1/kitchen-tickets/{id}', 'kitchen:write'],
    ['POST', '/v1/inventory/adjustments', 'inventory:write'],
    ['POST', '/v1/orders/{id}/cancel', 'orders:cancel'],
    ['POST', '/v1/payments/{id}/refunds', 'payments:refund'],
    ['POST', '/v1/checks/{id}/close', 'checks:write'],
    ['POST', '/v1/reservations/{id}/seat', 'reservations:write'],
    ['POST', '/v1/kitchen-tickets/{id}/bump', 'kitchen:write'],
  ])('requires on %s %s the scope %s', (method, path, scope) => {
    const found = routes().filter((route) => route.method === method && route.path === path);
    expect(found.map(({ scopes }) => scopes)).toEqual([[scope]]);
  });

  it('never removes a row that others refer to', () => {
    const lasting = ['locations', 'inventory', 'customers', 'orders', 'payments', 'checks', 'reservations'];
    const removable = routes().filter(({ method }) => method === 'DELETE');
    expect(removable.filter(({ resource }) => lasting.includes(resource))).toEqual([]);
    expect(removable).toHaveLength(7);
  });

  it('gives every route a unique name', () => {
    const ids = routes().map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toContain('listInventoryLevels');
    expect(ids).toContain('removePriceList');
  });
});

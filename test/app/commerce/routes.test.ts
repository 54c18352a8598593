import { Router } from 'express';
import { RESOURCES, routes, SCOPES } from '../../../src/app/commerce/resources';
import { requireScope } from '../../../src';
import { commerceApp, routeOf } from './commerce-app';

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

function realOrders(): { orders: Router; reached: string[] } {
  const reached: string[] = [];
  const orders = Router();
  orders.get('/', requireScope('orders:read'), (_req, res) => void res.json({ data: [], next_cursor: null }));
  orders.post('/', requireScope('orders:write'), (req, res) => {
    reached.push(req.body.channel);
    res.status(201).json({ id: 'from-the-database' });
  });
  return { orders, reached };
}

describe('a router that replaces a placeholder', () => {
  it('responds at the path of the resource, without X-Placeholder', async () => {
    const { orders } = realOrders();
    const response = await commerceApp({ orders }).as('orders:read').get('/v1/orders');
    expect(response.status).toBe(200);
    expect(response.body).toEqual({ data: [], next_cursor: null });
    expect(response.headers['x-placeholder']).toBeUndefined();
  });

  it('refuses by its own guards', async () => {
    const { orders, reached } = realOrders();
    const response = await commerceApp({ orders }).as('orders:read').follow(routeOf('createOrder'));
    expect(response.status).toBe(403);
    expect(response.headers['www-authenticate']).toContain('scope="orders:write"');
    expect(reached).toEqual([]);
  });

  it('receives only bodies that are valid by openapi.yaml', async () => {
    const { orders, reached } = realOrders();
    const caller = commerceApp({ orders }).as('orders:write');
    expect((await caller.post('/v1/orders', { channel: 'telepathy' })).status).toBe(400);
    expect(reached).toEqual([]);
    expect((await caller.follow(routeOf('createOrder'))).body).toEqual({ id: 'from-the-database' });
    expect(reached).toEqual(['pos']);
  });

  it('leaves the other placeholders unchanged', async () => {
    const { orders } = realOrders();
    const response = await commerceApp({ orders }).as('items:read').get('/v1/items/itm_0001');
    expect(response.body.name).toBe('Harbour burger');
  });

  it('does not respond without a guard', async () => {
    const orders = Router();
    orders.get('/', (_req, res) => void res.json({ secret: true }));
    const response = await commerceApp({ orders }).as('orders:read').get('/v1/orders');
    expect(response.status).toBe(500);
    expect(response.text).not.toContain('secret');
  });
});

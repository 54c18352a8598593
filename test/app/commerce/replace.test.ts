import { Router } from 'express';
import { requireScope } from '../../../src';
import { commerceRouter } from '../../../src/app/commerce/router';
import { commerceApp, routeOf } from './commerce-app';

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

  it('must be for a resource that exists', () => {
    const replace = { order: Router() } as object;
    expect(() => commerceRouter(replace)).toThrow(TypeError);
    expect(() => commerceRouter(replace)).toThrow(
      /^commerceRouter\(\): option "replace" names no resource: "order"; known are locations, items, .*kitchen-tickets$/,
    );
  });
});

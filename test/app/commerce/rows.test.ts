import { collection } from '../../../src/app/commerce/collection';
import type { Row } from '../../../src/app/commerce/collection';
import { routes } from '../../../src/app/commerce/resources';
import { NOW_MS } from '../../support/issuer';
import { commerceApp, exampleOf, routeOf } from './commerce-app';

const NOW_TEXT = new Date(NOW_MS).toISOString();

describe('placeholder rows', () => {
  const creations = routes().filter(({ operation }) => operation === 'create');

  it.each(creations.map((route) => [route.path, route] as const))(
    'POST %s responds with 201 and the URL of the row, which exists afterwards',
    async (path, route) => {
      const family = route.scopes[0]!.split(':')[0]!;
      const caller = commerceApp().as(`${family}:read`, `${family}:write`, 'customers:pii');
      const created = await caller.follow(route);
      expect(created.status).toBe(201);
      expect(created.headers['location']).toBe(`${path}/${created.body.id}`);
      expect(created.body).toMatchObject(exampleOf(route)!);

      const again = await caller.get(created.headers['location']!);
      expect(again.status).toBe(200);
      expect(again.body).toEqual(created.body);
    },
  );

  it('continues the numbers of the sample, the same in every instance', async () => {
    for (const caller of [commerceApp().as('orders:write'), commerceApp().as('orders:write')]) {
      const first = await caller.follow(routeOf('createOrder'));
      const second = await caller.follow(routeOf('createOrder'));
      expect([first.body.id, second.body.id]).toEqual(['ord_0006', 'ord_0007']);
    }
  });

  it('never reuses a removed number', async () => {
    const caller = commerceApp().as('tables:write');
    const first = await caller.follow(routeOf('createTable'));
    expect((await caller.delete(`/v1/tables/${first.body.id}`)).status).toBe(204);
    const second = await caller.follow(routeOf('createTable'));
    expect([first.body.id, second.body.id]).toEqual(['tbl_0005', 'tbl_0006']);
  });

  it('computes the total of an order, and stamps it with the clock', async () => {
    const caller = commerceApp().as('orders:write');
    const created = await caller.follow(routeOf('createOrder'));
    expect(created.body).toMatchObject({
      total: { amount: 3140, currency: 'GBP' },
      status: 'open',
      customer_id: null,
      created_at: NOW_TEXT,
    });
  });

  it('changes what a PATCH names, keeps the rest, and updates what depends on it', async () => {
    const caller = commerceApp().as('orders:read', 'orders:write');
    const before = await caller.get('/v1/orders/ord_0001');
    const lines = [{ item_id: 'itm_0002', quantity: 3, unit_price: { amount: 980, currency: 'GBP' } }];
    const changed = await caller.patch('/v1/orders/ord_0001', { lines });
    expect(changed.status).toBe(200);
    expect(changed.body).toEqual({
      ...before.body,
      lines,
      total: { amount: 2940, currency: 'GBP' },
      updated_at: NOW_TEXT,
    });
    expect((await caller.get('/v1/orders/ord_0001')).body).toEqual(changed.body);
  });

  it('removes a row permanently', async () => {
    const caller = commerceApp().as('items:read', 'items:write');
    const removed = await caller.delete('/v1/items/itm_0002');
    expect(removed.status).toBe(204);
    expect(removed.text).toBe('');
    expect((await caller.get('/v1/items/itm_0002')).status).toBe(404);
    expect((await caller.delete('/v1/items/itm_0002')).status).toBe(404);
    expect((await caller.patch('/v1/items/itm_0002', { name: 'Gone' })).status).toBe(404);
  });

  it('does not share rows between instances', async () => {
    await commerceApp().as('items:write').delete('/v1/items/itm_0001');
    expect((await commerceApp().as('items:read').get('/v1/items/itm_0001')).status).toBe(200);
  });

  it.each([
    ['1,000 rows', 1_005, 'x', 1_000],
    ['1 MB', 120, 'x'.repeat(10_000), 99],
  ])(
    'keeps %s of what is created: then the oldest created row goes, the sample stays',
    (_what, creates, text, kept) => {
      const rows = collection<Row & { text: string }, { text: string }>({
        prefix: 'row',
        sample: [{ text: 'sample' }],
        complete: (input) => input,
      })(() => NOW_MS);
      const created = Array.from({ length: creates }, () => rows.create({ text }).id);
      const found = created.filter((id) => rows.find(id) !== undefined);
      expect(found).toEqual(created.slice(-kept));
      expect(rows.find('row_0001')).toMatchObject({ text: 'sample' });

      for (const id of found) rows.update(id, { text: 'y'.repeat(20_000) });
      expect(found.filter((id) => rows.find(id) !== undefined).length).toBeLessThan(50);
      rows.remove(found.at(-1)!);
      expect(rows.page(2_000, undefined)?.rows.length).toBeLessThan(50);
    },
  );

  it.each(['ord_9999', 'ord_1', 'ord_00001', 'cus_0001', 'ord_', '__proto__', 'constructor'])(
    'responds with 404 for the id %s',
    async (id) => {
      const response = await commerceApp().as('orders:read').get(`/v1/orders/${id}`);
      expect(response.status).toBe(404);
      expect(response.type).toBe('application/problem+json');
      expect(response.body).toEqual({
        type: 'about:blank',
        title: 'Not Found',
        status: 404,
        detail: 'No row has this id.',
        code: 'not_found',
      });
    },
  );
});

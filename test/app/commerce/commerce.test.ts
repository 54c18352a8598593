import request from 'supertest';
import { collection } from '../../../src/app/commerce/collection';
import { NOW_MS } from '../../support/issuer';
import { commerceApp, concretePath, exampleOf, idOf, routeOf, routes, scopesOf } from './commerce-app';
import type { Caller } from './commerce-app';

const NOW_TEXT = new Date(NOW_MS).toISOString();

describe('placeholder rows', () => {
  const creations = routes.filter((route) => idOf(route).startsWith('create'));

  it.each(creations.map((route) => [route.path, route] as const))(
    'POST %s responds with 201 and the URL of the row, which exists afterwards',
    async (path, route) => {
      const family = scopesOf(route)[0]!.split(':')[0]!;
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
      const rows = collection([{ id: 'row_0001', text: 'sample' }], {}, () => NOW_TEXT);
      const created = Array.from({ length: creates }, () => rows.create({ text }).id);
      const found = created.filter((id) => rows.find(id) !== undefined);
      expect(found).toEqual(created.slice(-kept));
      expect(rows.find('row_0001')).toMatchObject({ text: 'sample' });
      for (const id of found) rows.update(id, { text: 'y'.repeat(20_000) });
      expect(found.filter((id) => rows.find(id) !== undefined).length).toBeLessThan(50);
      rows.remove(found.at(-1)!);
      expect(rows.page(2_000, 0).rows.length).toBeLessThan(50);
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

const lists = routes.filter((route) => idOf(route).startsWith('list'));

/** Every row of a list, and how many came with each page. */
async function walk(caller: Caller, path: string, limit: number): Promise<{ rows: unknown[]; sizes: number[] }> {
  const rows: unknown[] = [];
  const sizes: number[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const response = await caller.get(`${path}?limit=${limit}${cursor && `&cursor=${cursor}`}`);
    expect(response.status).toBe(200);
    rows.push(...response.body.data);
    sizes.push(response.body.data.length);
    cursor = response.body.next_cursor as string | null;
  }
  return { rows, sizes };
}

describe('pages', () => {
  it.each(lists.map((route) => [route.path, scopesOf(route)[0]!]))(
    'of %s are together the whole list',
    async (path, scope) => {
      const caller = commerceApp().as(scope);
      const whole = await caller.get(path);
      expect(whole.body.data.length).toBeGreaterThanOrEqual(3);
      expect(whole.body.next_cursor).toBeNull();
      for (const limit of [1, 2, whole.body.data.length]) {
        const { rows, sizes } = await walk(caller, path, limit);
        expect(rows).toEqual(whole.body.data);
        expect(sizes.slice(0, -1).every((size) => size === limit)).toBe(true);
        expect(sizes.at(-1)).toBeGreaterThan(0);
      }
    },
  );

  it('have 20 rows unless the request says otherwise', async () => {
    const caller = commerceApp().as('tables:read', 'tables:write');
    const table = { location_id: 'loc_0002', name: 'T', seats: 2, area: 'bar' };
    for (let more = 0; more < 20; more += 1) await caller.post('/v1/tables', table);
    const { body } = await caller.get('/v1/tables');
    expect(body.data).toHaveLength(20);
    const rest = await caller.get(`/v1/tables?cursor=${body.next_cursor}`);
    expect(rest.body.data).toHaveLength(4);
    expect(rest.body.next_cursor).toBeNull();
  });

  it('continue at the same place when the row named by the cursor is removed', async () => {
    const caller = commerceApp().as('items:read', 'items:write');
    const first = await caller.get('/v1/items?limit=2');
    await caller.delete('/v1/items/itm_0002');
    const second = await caller.get(`/v1/items?limit=1&cursor=${first.body.next_cursor}`);
    expect(second.body.data).toMatchObject([{ id: 'itm_0003' }]);
  });
});

const CONTACT = { email: 'amara.osei@example.com', phone: '+442079460101' };
const HIDDEN = { email: null, phone: null };

describe('the contact data of customers', () => {
  it('is null without customers:pii, in lists and in single responses', async () => {
    const caller = commerceApp().as('customers:read');
    const list = await caller.get('/v1/customers');
    for (const row of list.body.data) expect(row).toMatchObject(HIDDEN);
    expect((await caller.get('/v1/customers/cus_0001')).body).toMatchObject({ name: 'Amara Osei', ...HIDDEN });
  });

  it('is shown with customers:pii', async () => {
    const caller = commerceApp().as('customers:read', 'customers:pii');
    const list = await caller.get('/v1/customers');
    expect(list.body.data[0]).toMatchObject(CONTACT);
    expect((await caller.get('/v1/customers/cus_0001')).body).toMatchObject({ name: 'Amara Osei', ...CONTACT });
  });

  it('is not reached with customers:pii alone', async () => {
    const response = await commerceApp().as('customers:pii').get('/v1/customers/cus_0001');
    expect(response.status).toBe(403);
    expect(response.body.required_scopes).toEqual(['customers:read']);
  });

  it('is hidden from writers without customers:pii, but stored', async () => {
    const shop = commerceApp();
    const writer = shop.as('customers:write');
    const created = await writer.follow(routeOf('createCustomer'));
    expect(created.body).toMatchObject({ name: 'Noor Haddad', ...HIDDEN });
    const changed = await writer.patch('/v1/customers/cus_0001', { marketing_consent: false });
    expect(changed.body).toMatchObject({ marketing_consent: false, ...HIDDEN });
    const reader = shop.as('customers:read', 'customers:pii');
    expect((await reader.get(created.headers['location']!)).body.email).toBe('noor.haddad@example.com');
    expect((await reader.get('/v1/customers/cus_0001')).body).toMatchObject(CONTACT);
  });
});

describe('X-Placeholder', () => {
  const named = routes.map((route) => [`${route.method} ${route.path}`, route] as const);
  const scene = commerceApp();

  it.each(named)('is in the response to %s, and in no refusal', async (_name, route) => {
    const method = route.method.toLowerCase() as 'get';
    const refused = await request(scene.app)[method](concretePath(route));
    expect(refused.headers['x-placeholder']).toBeUndefined();
    const response = await scene.as(...scopesOf(route)).follow(route);
    expect(response.headers['x-placeholder']).toBe('true');
  });
});

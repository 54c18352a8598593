import { Router } from 'express';
import type { Response } from 'supertest';
import { RESOURCES } from '../../../src/app/commerce/resources';
import { commerceRouter } from '../../../src/app/commerce/router';
import { loadContract, scopesOf as allScopes } from '../../../src/app/contract';
import { describeRoutes } from '../../../src/testing/audit/app-routes';
import { commerceApp, document, idOf, routes } from './commerce-app';
import { NOW_MS } from '../../support/issuer';
import { schemaValidators } from '../../../src/testing/contract/schemas';

describe('the table of resources', () => {
  it('has the 15 resources of the design', () => {
    const retail = 'locations items categories inventory price-lists promotions customers orders payments';
    const restaurant = 'menus modifier-groups tables checks reservations kitchen-tickets';
    expect(RESOURCES.map(({ path }) => path)).toEqual(`${retail} ${restaurant}`.split(' '));
  });

  it('has 29 scopes, sorted: read and write of 13 families, and three others', () => {
    const families =
      'locations items inventory prices promotions customers orders payments menus tables checks reservations kitchen';
    const readAndWrite = families.split(' ').flatMap((family) => [`${family}:read`, `${family}:write`]);
    const expected = [...readAndWrite, 'customers:pii', 'orders:cancel', 'payments:refund'].sort();
    expect(expected).toHaveLength(29);
    expect(allScopes(loadContract())).toEqual(expected);
    const { routes: made } = describeRoutes(Router().use('/v1', commerceRouter(loadContract())));
    const required = new Set(made.flatMap(({ requires }) => requires.flat()));
    expect([...required, 'customers:pii'].sort()).toEqual(expected);
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
    const { routes: made } = describeRoutes(Router().use('/v1', commerceRouter(loadContract())));
    const found = made.filter((route) => route.method === method && route.path === path);
    expect(found.map(({ requires }) => requires)).toEqual([[[scope]]]);
  });

  it('never removes a row that others refer to', () => {
    const lasting = ['locations', 'inventory', 'customers', 'orders', 'payments', 'checks', 'reservations'];
    const removable = RESOURCES.filter(({ operations }) => operations.includes('remove'));
    expect(removable.filter(({ path }) => lasting.includes(path))).toEqual([]);
    expect(removable).toHaveLength(7);
  });

  it('gives every route a unique name', () => {
    const ids = routes.map(idOf);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toContain('listInventoryLevels');
    expect(ids).toContain('removePriceList');
  });
});

const NOW_TEXT = new Date(NOW_MS).toISOString();
const gbp = (amount: number): object => ({ amount, currency: 'GBP' });

function expectConflict(response: Response, detail: string): void {
  expect(response.status).toBe(409);
  expect(response.type).toBe('application/problem+json');
  expect(response.body).toEqual({ type: 'about:blank', title: 'Conflict', status: 409, detail, code: 'conflict' });
}

describe('POST /v1/orders/{id}/cancel', () => {
  it('cancels an open order once', async () => {
    const caller = commerceApp().as('orders:cancel', 'orders:read');
    const cancelled = await caller.post('/v1/orders/ord_0001/cancel', { reason: 'Guest left' });
    expect(cancelled.status).toBe(200);
    expect(cancelled.body).toMatchObject({ status: 'cancelled', cancel_reason: 'Guest left', updated_at: NOW_TEXT });
    expect((await caller.get('/v1/orders/ord_0001')).body).toEqual(cancelled.body);
    const again = await caller.post('/v1/orders/ord_0001/cancel');
    expectConflict(again, 'The order is cancelled; only open orders can be cancelled.');
  });

  it('needs no body; without the order it is 404', async () => {
    const caller = commerceApp().as('orders:cancel');
    expect((await caller.post('/v1/orders/ord_0002/cancel')).body.cancel_reason).toBeNull();
    expect((await caller.post('/v1/orders/ord_9999/cancel')).status).toBe(404);
  });

  it('does not cancel a completed order', async () => {
    const response = await commerceApp().as('orders:cancel').post('/v1/orders/ord_0003/cancel');
    expectConflict(response, 'The order is completed; only open orders can be cancelled.');
  });
});

describe('POST /v1/payments/{id}/refunds', () => {
  const PATH = '/v1/payments/pay_0001/refunds';

  it('refunds in parts, until nothing is left', async () => {
    const caller = commerceApp().as('payments:refund', 'payments:read');
    const given = { amount: gbp(500), reason: 'Cold' };
    const first = await caller.post(PATH, given);
    expect(first.status).toBe(201);
    expect(first.headers['location']).toBe('/v1/payments/pay_0001');
    const refund = { id: 'pay_0001_r1', payment_id: 'pay_0001', ...given, created_at: NOW_TEXT };
    expect(first.body).toEqual(refund);
    const partly = await caller.get('/v1/payments/pay_0001');
    expect(partly.body).toMatchObject({ status: 'partially_refunded', refunded: gbp(500), refunds: [refund] });

    const tooMuch = await caller.post(PATH, { amount: gbp(2641) });
    expectConflict(tooMuch, '2640 of 3140 GBP are left to refund; 2641 is too much.');
    expect((await caller.post(PATH, { amount: gbp(2640) })).status).toBe(201);
    const wholly = await caller.get('/v1/payments/pay_0001');
    expect(wholly.body).toMatchObject({ status: 'refunded', refunded: gbp(3140) });
    expectConflict(await caller.post(PATH, { amount: gbp(1) }), '0 of 3140 GBP are left to refund; 1 is too much.');
  });

  it('books at most 100 refunds of one payment', async () => {
    const caller = commerceApp().as('payments:refund', 'payments:read');
    for (let n = 0; n < 100; n++) expect((await caller.post(PATH, { amount: gbp(1) })).status).toBe(201);
    const more = await caller.post(PATH, { amount: gbp(1) });
    expectConflict(more, 'A placeholder books at most 100 refunds of a payment.');
    const { body } = await caller.get('/v1/payments/pay_0001');
    expect(body.refunds).toHaveLength(100);
    expect(body.refunded).toEqual(gbp(100));
  });

  it('does not change the currency, and books nothing when it refuses', async () => {
    const caller = commerceApp().as('payments:refund', 'payments:read');
    const response = await caller.post(PATH, { amount: { amount: 100, currency: 'EUR' } });
    expectConflict(response, 'The payment was taken in GBP; it cannot be refunded in EUR.');
    expect((await caller.get('/v1/payments/pay_0001')).body.refunds).toEqual([]);
  });
});

describe('POST /v1/inventory/adjustments', () => {
  const adjustment = { inventory_id: 'inv_0001', change: -4, reason: 'sold' };

  it('books a movement, and responds with what is left', async () => {
    const caller = commerceApp().as('inventory:write', 'inventory:read');
    const booked = await caller.post('/v1/inventory/adjustments', adjustment);
    expect(booked.status).toBe(201);
    expect(booked.headers['location']).toBe('/v1/inventory/inv_0001');
    expect(booked.body).toEqual({ ...adjustment, note: null, on_hand: 60, created_at: NOW_TEXT });
    expect((await caller.get('/v1/inventory/inv_0001')).body).toMatchObject({ on_hand: 60, updated_at: NOW_TEXT });
  });

  it('does not touch reserved stock', async () => {
    const caller = commerceApp().as('inventory:write', 'inventory:read');
    const response = await caller.post('/v1/inventory/adjustments', { ...adjustment, change: -61 });
    expectConflict(response, '64 are on hand and 4 of them reserved: 61 cannot leave.');
    expect((await caller.get('/v1/inventory/inv_0001')).body.on_hand).toBe(64);
  });

  it('is a conflict for an unknown level', async () => {
    const body = { ...adjustment, inventory_id: 'inv_9999' };
    const response = await commerceApp().as('inventory:write').post('/v1/inventory/adjustments', body);
    expectConflict(response, 'The inventory_id of the body does not exist.');
  });
});

describe('POST /v1/checks/{id}/close', () => {
  it('closes a check once', async () => {
    const caller = commerceApp().as('checks:write');
    const closed = await caller.post('/v1/checks/chk_0001/close');
    expect(closed.body).toMatchObject({ status: 'closed', closed_at: NOW_TEXT, total: gbp(3130) });
    expectConflict(await caller.post('/v1/checks/chk_0001/close'), 'The check is closed already.');
  });
});

describe('POST /v1/reservations/{id}/seat', () => {
  it('seats booked guests once', async () => {
    const caller = commerceApp().as('reservations:write');
    const seated = await caller.post('/v1/reservations/rsv_0001/seat', { table_id: 'tbl_0002' });
    expect(seated.body).toMatchObject({ status: 'seated', table_id: 'tbl_0002' });
    const again = await caller.post('/v1/reservations/rsv_0001/seat', { table_id: 'tbl_0003' });
    expectConflict(again, 'The reservation is seated; only booked guests can be seated.');
    const noShow = await caller.post('/v1/reservations/rsv_0004/seat', { table_id: 'tbl_0003' });
    expectConflict(noShow, 'The reservation is no-show; only booked guests can be seated.');
  });
});

describe('POST /v1/kitchen-tickets/{id}/bump', () => {
  it('advances a ticket step by step', async () => {
    const caller = commerceApp().as('kitchen:write');
    const path = '/v1/kitchen-tickets/ktk_0004/bump';
    for (const status of ['preparing', 'ready', 'served']) {
      expect((await caller.post(path)).body).toMatchObject({ status, updated_at: NOW_TEXT });
    }
    expectConflict(await caller.post(path), 'The ticket is served already: there is nothing left to do.');
  });
});

describe('the total of an order', () => {
  it('is as documented, however high the prices are', async () => {
    const line = { item_id: 'itm_0001', quantity: 999, unit_price: gbp(100_000_000) };
    const body = { location_id: 'loc_0001', channel: 'web', lines: [line, line] };
    const { body: order } = await commerceApp().as('orders:write').post('/v1/orders', body);
    expect(order.total).toEqual(gbp(199_800_000_000));
    expect(schemaValidators(document).problemOf(['components', 'schemas', 'Order'], order)).toBeUndefined();
  });
});

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import request from 'supertest';
import { contractCases, createTestIssuer, expectProblem } from '@tillgate/testing';
import { createApp } from '../src/app/app';
import { createLog } from '../src/app/log';
import { appSettings } from '../src/app/settings';

const issuer = createTestIssuer();
const settings = appSettings({ TILLGATE_AUTH_URL: issuer.issuer, TILLGATE_RATE_LIMIT: 'off' });
const { app, close } = createApp({ ...settings, gate: issuer.options, log: createLog('silent') });
after(close);

/** The first of the sample rows that each placeholder has. */
const IDS: Readonly<Record<string, string>> = {
  locations: 'loc_0001',
  items: 'itm_0001',
  categories: 'cat_0001',
  inventory: 'inv_0001',
  'price-lists': 'prl_0001',
  promotions: 'prm_0001',
  customers: 'cus_0001',
  orders: 'ord_0001',
  payments: 'pay_0001',
  menus: 'mnu_0001',
  'modifier-groups': 'mod_0001',
  tables: 'tbl_0001',
  checks: 'chk_0001',
  reservations: 'rsv_0001',
  'kitchen-tickets': 'ktk_0001',
};

// Every operation of openapi.yaml with every kind of token, good and bad.
const cases = contractCases({
  app,
  openapi: 'openapi.yaml',
  issuer,
  requests: ({ path }) => (path.includes('{id}') ? { path: { id: IDS[path.split('/')[2] ?? ''] ?? '' } } : {}),
  ignore: ['/docs', '/docs/*'],
  depth: 'quick',
});
for (const { name, run } of cases) test(name, run);

test('shows an order', async () => {
  const token = issuer.token({ scope: 'orders:read' });
  const response = await request(app).get(`/v1/orders/${IDS['orders']}`).auth(token, { type: 'bearer' });
  assert.equal(response.status, 200);
});

test('refuses an order of nothing', async () => {
  const token = issuer.token({ scope: 'orders:write' });
  const response = await request(app).post('/v1/orders').auth(token, { type: 'bearer' }).send({});
  expectProblem(response, { status: 400, code: 'invalid_request' });
});

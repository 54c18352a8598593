import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createLog, readSettings } from '@tillgate/app';
import { contractCases, createTestIssuer } from '@tillgate/testing';
import { createApp } from './app.js';

const issuer = createTestIssuer();
const { handler, close } = createApp({
  settings: readSettings({ TILLGATE_AUTH_URL: issuer.issuer, TILLGATE_RATE_LIMIT: 'off' }),
  gate: issuer.options,
  logger: createLog({ level: 'silent' }),
});
after(close);

// Placeholders are called without an id of theirs; our own orders are called with one.
const cases = contractCases({
  app: handler,
  openapi: fileURLToPath(import.meta.resolve('@tillgate/testing/openapi.yaml')),
  issuer,
  requests: ({ path }) => (path.startsWith('/v1/orders/{id}') ? { path: { id: 'mine_1' } } : {}),
});
for (const { name, run } of cases) test(name, run);

test('our router responds in the place of the placeholder', async () => {
  const { default: request } = await import('supertest');
  const bearer = `Bearer ${issuer.token({ scope: 'orders:read items:read' })}`;
  const orders = await request(handler).get('/v1/orders/mine_1').set('Authorization', bearer);
  assert.deepEqual([orders.status, orders.headers['x-placeholder']], [200, undefined]);
  const items = await request(handler).get('/v1/items').set('Authorization', bearer);
  assert.deepEqual([items.status, items.headers['x-placeholder']], [200, 'true']);
});

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import request from 'supertest';
import { createLog, readSettings } from '@tillgate/app';
import { contractCases, createTestIssuer, expectProblem } from '@tillgate/testing';
import { createApp } from '../app.js';

const issuer = createTestIssuer();
const { handler, close } = createApp({
  settings: readSettings({ TILLGATE_AUTH_URL: issuer.issuer, TILLGATE_RATE_LIMIT: 'off' }),
  gate: issuer.options,
  logger: createLog({ level: 'silent' }),
});
after(close);

// Every operation of openapi.yaml with every kind of token, good and bad.
for (const { name, run } of contractCases({ app: handler, openapi: 'openapi.yaml', issuer })) test(name, run);

test('shows an order that was placed', async () => {
  const token = issuer.token({ scope: 'orders:read orders:write' });
  const placed = await request(handler)
    .post('/v1/orders')
    .auth(token, { type: 'bearer' })
    .send({ item: 'tea', quantity: 1 });
  assert.equal(placed.status, 201);
  const shown = await request(handler)
    .get(placed.headers['location'] ?? '')
    .auth(token, { type: 'bearer' });
  assert.deepEqual(shown.body, { id: placed.body.id, item: 'tea', quantity: 1 });
});

test('refuses an order of nothing', async () => {
  const token = issuer.token({ scope: 'orders:write' });
  const response = await request(handler).post('/v1/orders').auth(token, { type: 'bearer' }).send({ item: 'tea' });
  expectProblem(response, { status: 400, code: 'invalid_request' });
});

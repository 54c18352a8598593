import assert from 'node:assert/strict';
import { test } from 'node:test';
import request from 'supertest';
import { createTestIssuer, expectChallenge, expectProblem } from 'tillgate/testing';
import { createApp } from '../app.js';

const issuer = createTestIssuer();
const app = createApp({ gate: issuer.options });

function getOrders(token) {
  const call = request(app).get('/v1/orders');
  return token ? call.set('Authorization', `Bearer ${token}`) : call;
}

test('lists orders for a client with orders:read', async () => {
  const response = await getOrders(issuer.token({ clientId: 'pos-terminal', scope: 'orders:read' }));
  assert.equal(response.status, 200);
  assert.equal(response.body.caller, 'pos-terminal');
});

test('refuses a request without a token', async () => {
  const response = await getOrders();
  expectProblem(response, { status: 401, code: 'missing_token' });
  expectChallenge(response, {});
});

test('refuses a client without the scope', async () => {
  const response = await getOrders(issuer.token({ scope: 'items:read' }));
  expectProblem(response, { status: 403, code: 'insufficient_scope' });
});

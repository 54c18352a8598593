import assert from 'node:assert/strict';
import { test } from 'node:test';
import request from 'supertest';
import { createTestIssuer, expectProblem } from '@tillgate/testing';
import { createApp } from './app.js';

const issuer = createTestIssuer();
const app = createApp(issuer.options);

test('lists orders for a client with orders:read', async () => {
  const token = issuer.token({ clientId: 'pos-terminal', scope: 'orders:read' });
  const response = await request(app).get('/v1/orders').set('Authorization', `Bearer ${token}`);
  assert.equal(response.status, 200);
  assert.equal(response.body.caller, 'pos-terminal');
});

test('refuses a client without the scope, and a request without a token', async () => {
  const token = issuer.token({ scope: 'items:read' });
  const denied = await request(app).get('/v1/orders').set('Authorization', `Bearer ${token}`);
  expectProblem(denied, { status: 403, code: 'insufficient_scope' });
  expectProblem(await request(app).get('/v1/orders'), { status: 401, code: 'missing_token' });
});

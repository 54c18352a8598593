'use strict';
const assert = require('node:assert/strict');
const { test } = require('node:test');
const request = require('supertest');
const { createTestIssuer, expectProblem } = require('@tillgate/testing');
const { createApp } = require('./app.js');

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

test('asks for no token outside /v1', async () => {
  assert.equal((await request(app).get('/livez')).status, 200);
});

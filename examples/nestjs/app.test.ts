import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { INestApplication } from '@nestjs/common';
import request from 'supertest';
import { createTestIssuer, expectProblem } from '@tillgate/testing';
import { createApp } from './app.js';

const issuer = createTestIssuer();
let app: INestApplication;

before(async () => {
  app = await createApp(issuer.options);
  await app.init();
});
after(() => app.close());

test('lists orders for a client with orders:read', async () => {
  const token = issuer.token({ clientId: 'pos-terminal', scope: 'orders:read' });
  const response = await request(app.getHttpServer()).get('/v1/orders').set('Authorization', `Bearer ${token}`);
  assert.equal(response.status, 200);
  assert.equal(response.body.caller, 'pos-terminal');
});

test('refuses a client without the scope, and a request without a token', async () => {
  const token = issuer.token({ scope: 'items:read' });
  const denied = await request(app.getHttpServer()).get('/v1/orders').set('Authorization', `Bearer ${token}`);
  expectProblem(denied, { status: 403, code: 'insufficient_scope' });
  expectProblem(await request(app.getHttpServer()).get('/v1/orders'), { status: 401, code: 'missing_token' });
});

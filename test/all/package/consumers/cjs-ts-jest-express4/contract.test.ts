import request from 'supertest';
import { createTestIssuer, expectChallenge, expectProblem } from 'tillgate/testing';
import { createApp } from './app';

const issuer = createTestIssuer();
const app = createApp(issuer.options);

test('a client with both scopes writes orders', async () => {
  const token = issuer.token({ clientId: 'till-2', scope: 'orders:read orders:write' });
  const answer = await request(app).post('/v1/orders').auth(token, { type: 'bearer' });
  expect(answer.status).toBe(201);
  expect(answer.body).toEqual({ caller: 'till-2' });
});

test('a client with one of the scopes is told which are needed', async () => {
  const token = issuer.token({ scope: 'orders:read' });
  const answer = await request(app).post('/v1/orders').auth(token, { type: 'bearer' });
  expectChallenge(answer, { error: 'insufficient_scope', scope: 'orders:read orders:write' });
});

test('a stranger is refused', async () => {
  const answer = await request(app).get('/v1/orders');
  expectProblem(answer, { status: 401, code: 'missing_token' });
});

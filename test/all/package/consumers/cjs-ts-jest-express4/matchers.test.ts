import 'tillgate/testing/jest';
import request from 'supertest';
import { createTestIssuer } from 'tillgate/testing';
import { createApp } from './app';

const issuer = createTestIssuer();
const app = createApp(issuer.options);

test('orders are not for strangers', async () => {
  const answer = await request(app).get('/v1/orders');
  expect(answer).toBeProblem({ status: 401, code: 'missing_token' });
  expect(answer).toHaveChallenge({});
});

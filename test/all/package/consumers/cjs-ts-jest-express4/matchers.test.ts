// setupFilesAfterEnv adds the matchers; their types come with @tillgate/testing.
import request from 'supertest';
import { createTestIssuer } from '@tillgate/testing';
import { createApp } from './app';

const issuer = createTestIssuer();
const app = createApp(issuer.options);

test('orders need a token', async () => {
  const response = await request(app).get('/v1/orders');
  expect(response).toBeProblem({ status: 401, code: 'missing_token' });
  expect(response).toHaveChallenge({});
});

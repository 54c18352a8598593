import request from 'supertest';
import { createTestIssuer } from '@tillgate/testing';
import { matchers } from '@tillgate/testing/vitest';
import { expect, test } from 'vitest';
import { createApp } from './app.js';

const issuer = createTestIssuer();
const app = createApp(issuer.options);
expect.extend(matchers);

test('orders are not for strangers', async () => {
  const response = await request(app).get('/v1/orders');
  expect(response).toBeProblem({ status: 401, code: 'missing_token' });
  expect(response).toHaveChallenge({});
});

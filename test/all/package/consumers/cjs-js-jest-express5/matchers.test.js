require('@tillgate/testing/jest');
const request = require('supertest');
const { createTestIssuer } = require('@tillgate/testing');
const { createApp } = require('./app');

const issuer = createTestIssuer();
const app = createApp(issuer.options);

test('orders are not for strangers', async () => {
  const response = await request(app).get('/v1/orders');
  expect(response).toBeProblem({ status: 401, code: 'missing_token' });
  expect(response).toHaveChallenge({});
});

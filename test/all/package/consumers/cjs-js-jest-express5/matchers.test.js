require('tillgate/testing/jest');
const request = require('supertest');
const { createTestIssuer } = require('tillgate/testing');
const { createApp } = require('./app');

const issuer = createTestIssuer();
const app = createApp(issuer.options);

test('orders are not for strangers', async () => {
  const answer = await request(app).get('/v1/orders');
  expect(answer).toBeProblem({ status: 401, code: 'missing_token' });
  expect(answer).toHaveChallenge({});
});

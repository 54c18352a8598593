import express from 'express';
import { appTarget } from '../../src/testing/contract-cases/app-target';

describe('appTarget()', () => {
  it('does not say of what node answers itself that it reached the handler of the request before', async () => {
    const app = express();
    app.get('/orders', function answerOrders(_req, res) {
      res.json([]);
    });
    const call = appTarget(app, []);
    const request = { method: 'GET', target: '/orders', headers: {}, body: undefined };

    const before = await call(request);
    const unmet = await call({ ...request, headers: { expect: 'a-miracle' } });

    expect(before.reached).toEqual(['answerOrders']);
    expect(unmet.answer).toMatchObject({ status: 417, localPort: before.answer.localPort });
    expect(unmet.reached).toEqual([]);
  });
});

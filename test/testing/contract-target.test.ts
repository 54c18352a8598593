import express from 'express';
import { appTarget } from '../../src/testing/contract-cases/target';

describe('appTarget()', () => {
  it('does not attribute responses that Node sends itself to the handler of the previous request', async () => {
    const app = express();
    app.get('/orders', function listOrders(_req, res) {
      res.json([]);
    });
    const { call } = appTarget(app, []);
    const request = { method: 'GET', target: '/orders', headers: {}, body: undefined };

    const before = await call(request);
    const refused = await call({ ...request, headers: { expect: 'a-miracle' } });

    expect(before.reached).toEqual(['listOrders']);
    expect(refused.response).toMatchObject({ status: 417, localPort: before.response.localPort });
    expect(refused.reached).toEqual([]);
  });
});

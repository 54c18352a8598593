import { Router } from 'express';
import { requireScope, sendProblem } from 'tillgate';

/** `/v1/orders`. Each route has its guard; bodies have been validated by openapi.yaml. */
export function ordersRouter() {
  const orders = new Map([['ord_1', { id: 'ord_1', item: 'espresso', quantity: 2 }]]);
  const router = Router();

  router.get('/', requireScope('orders:read'), (req, res) => {
    res.json({ data: [...orders.values()] });
  });

  router.post('/', requireScope('orders:write'), (req, res) => {
    const order = { id: `ord_${orders.size + 1}`, ...req.body };
    orders.set(order.id, order);
    res.status(201).location(`${req.baseUrl}/${order.id}`).json(order);
  });

  router.get('/:id', requireScope('orders:read'), (req, res) => {
    const order = orders.get(req.params.id);
    if (order) res.json(order);
    else sendProblem(req, res, { status: 404, code: 'not_found', detail: 'No order has this id.' });
  });

  return router;
}

import { Router } from 'express';
import { requireScope, sendProblem } from 'tillgate';

interface NewOrder {
  readonly item: string;
  readonly quantity: number;
}

interface Order extends NewOrder {
  readonly id: string;
}

/** `/v1/orders`. Each route has its guard; bodies have been validated by openapi.yaml. */
export function ordersRouter(): Router {
  const orders = new Map<string, Order>([['ord_1', { id: 'ord_1', item: 'espresso', quantity: 2 }]]);
  const router = Router();

  router.get('/', requireScope('orders:read'), (req, res) => {
    res.json({ data: [...orders.values()] });
  });

  router.post('/', requireScope('orders:write'), (req, res) => {
    const order: Order = { id: `ord_${orders.size + 1}`, ...(req.body as NewOrder) };
    orders.set(order.id, order);
    res.status(201).location(`${req.baseUrl}/${order.id}`).json(order);
  });

  router.get('/:id', requireScope('orders:read'), (req, res) => {
    const order = orders.get(String(req.params['id']));
    if (order) res.json(order);
    else sendProblem(req, res, { status: 404, code: 'not_found', detail: 'No order has this id.' });
  });

  return router;
}

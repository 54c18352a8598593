import { Router } from 'express';
import { requireScope } from 'tillgate';
import { createApp as createTillgateApp } from '@tillgate/app';

/** The scaffold, with a router of our own in the place of the placeholder for orders. */
export function createApp(options) {
  return createTillgateApp({ ...options, replace: { orders: ordersRouter() } });
}

function ordersRouter() {
  const rows = new Map();
  const router = Router();
  router.get('/', requireScope('orders:read'), (_req, res) => {
    res.json({ data: [...rows.values()], next_cursor: null });
  });
  router.post('/', requireScope('orders:write'), (req, res) => {
    const row = save(`mine_${rows.size + 1}`, { customer_id: null, note: null, ...req.body });
    res.status(201).location(`${req.baseUrl}/${row.id}`).json(row);
  });
  router.get('/:id', requireScope('orders:read'), withRow, (_req, res) => res.json(res.locals.row));
  router.patch('/:id', requireScope('orders:write'), withRow, (req, res) => {
    res.json(save(req.params.id, { ...res.locals.row, ...req.body }));
  });
  router.post('/:id/cancel', requireScope('orders:cancel'), withRow, (req, res) => {
    const cancel_reason = req.body?.reason ?? null;
    res.json(save(req.params.id, { ...res.locals.row, status: 'cancelled', cancel_reason }));
  });

  function save(id, { lines, ...members }) {
    const amount = lines.reduce((sum, { quantity, unit_price }) => sum + quantity * unit_price.amount, 0);
    const now = new Date().toISOString();
    const total = { amount, currency: lines[0].unit_price.currency };
    const row = { status: 'open', cancel_reason: null, created_at: now, ...members, id, lines, total, updated_at: now };
    rows.set(id, row);
    return row;
  }
  function withRow(req, res, next) {
    res.locals.row = rows.get(req.params.id);
    if (res.locals.row) next();
    else next(Object.assign(new Error('no such order'), { status: 404 }));
  }
  const line = { item_id: 'itm_0001', quantity: 1, unit_price: { amount: 100, currency: 'GBP' } };
  save('mine_1', { location_id: 'loc_0001', channel: 'pos', customer_id: null, note: null, lines: [line] });
  return router;
}

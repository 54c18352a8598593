import { collection } from '../collection';
import { line, pence, totalOf } from './money';
import type { Line, Money } from './money';

const PII_SCOPE = 'customers:pii';

/** Customers. Contact data is only for callers with `customers:pii`, also in the response to a creation. */
const customers = collection({
  prefix: 'cus',
  sample: [
    customer('Amara Osei', 'amara.osei@example.com', '+442079460101', 1240),
    customer('Bram de Wit', 'bram.dewit@example.com', '+442079460102', 85),
    customer('Chloe Martin', 'chloe.martin@example.com', null, 0),
    customer('Divya Rao', null, '+442079460104', 610),
  ],
  defaults: { email: null, phone: null, marketing_consent: false },
  complete: (input, now) => ({ ...input, loyalty_points: 0, created_at: now }),
  present: (row, scopes) => (scopes.includes(PII_SCOPE) ? row : { ...row, email: null, phone: null }),
});

function customer(name: string, email: string | null, phone: string | null, loyalty_points: number) {
  return { name, email, phone, marketing_consent: true, loyalty_points, created_at: '2025-11-18T10:20:00.000Z' };
}

/** What is bought. */
const orders = collection({
  prefix: 'ord',
  sample: [
    order('pos', 'open', 'cus_0001', [line('itm_0001', 2, 1150), line('itm_0003', 2, 420)]),
    order('kiosk', 'open', null, [line('itm_0004', 1, 360)]),
    order('web', 'completed', 'cus_0002', [line('itm_0005', 3, 895), line('itm_0006', 1, 1400)]),
    order('delivery', 'open', 'cus_0004', [line('itm_0002', 1, 980), line('itm_0003', 1, 420)]),
    { ...order('web', 'cancelled', 'cus_0003', [line('itm_0006', 2, 1400)]), cancel_reason: 'Ordered twice' },
  ],
  defaults: { customer_id: null, note: null },
  complete: (input, now) => ({
    ...input,
    total: totalOf(input.lines),
    status: 'open',
    cancel_reason: null,
    created_at: now,
    updated_at: now,
  }),
  settle: (row, now) => ({ ...row, total: totalOf(row.lines), updated_at: now }),
  actions: {
    cancel(row, { reason = null }, now) {
      if (row.status !== 'open') return { conflict: `The order is ${row.status}; only open orders can be cancelled.` };
      return { row: { ...row, status: 'cancelled', cancel_reason: reason, updated_at: now } };
    },
  },
});

function order(channel: string, status: string, customer_id: string | null, lines: readonly Line[]) {
  const location_id = channel === 'pos' || channel === 'kiosk' ? 'loc_0002' : 'loc_0001';
  const at = '2026-03-02T12:04:00.000Z';
  const amounts = { lines, total: totalOf(lines) };
  return {
    location_id,
    customer_id,
    channel,
    note: null,
    ...amounts,
    status,
    cancel_reason: null,
    created_at: at,
    updated_at: at,
  };
}

/** Money taken, and given back in parts. */
const payments = collection({
  prefix: 'pay',
  sample: [
    captured({ order_id: 'ord_0001', amount: pence(3140), method: 'card' }, '2026-03-02T12:05:00.000Z'),
    captured({ order_id: 'ord_0002', amount: pence(360), method: 'cash' }, '2026-03-02T12:05:30.000Z'),
    captured({ order_id: 'ord_0003', amount: pence(4085), method: 'card' }, '2026-03-02T12:06:00.000Z'),
    captured({ order_id: 'ord_0004', amount: pence(1400), method: 'gift_card' }, '2026-03-02T12:07:00.000Z'),
  ],
  complete: captured,
  actions: {
    refund(row, input, now) {
      const { amount: paid, refunded, refunds } = row;
      const { amount, currency } = input['amount'] as Money;
      if (currency !== paid.currency) {
        return { conflict: `The payment was taken in ${paid.currency}; it cannot be refunded in ${currency}.` };
      }
      const left = paid.amount - refunded.amount;
      if (amount > left) {
        return { conflict: `${left} of ${paid.amount} ${paid.currency} are left to refund; ${amount} is too much.` };
      }
      const number = refunds.length + 1;
      if (number > MAX_REFUNDS) return { conflict: `A placeholder books at most ${MAX_REFUNDS} refunds of a payment.` };
      const { reason = null } = input;
      const id = `${row.id}_r${number}`;
      const response = { id, payment_id: row.id, amount: input['amount'], reason, created_at: now };
      const status = amount === left ? 'refunded' : 'partially_refunded';
      const total = { ...refunded, amount: refunded.amount + amount };
      return { row: { ...row, status, refunded: total, refunds: [...refunds, response] }, response };
    },
  },
});

/** Refunds are part of the row of their payment: its size must stay bounded. */
const MAX_REFUNDS = 100;

function captured(input: { readonly order_id: string; readonly amount: Money; readonly method: string }, now: string) {
  const refunded = { amount: 0, currency: input.amount.currency };
  return { ...input, status: 'captured', refunded, refunds: [] as readonly object[], created_at: now };
}

/** Customers, orders and payments. */
export const SALES = { customers, orders, payments };

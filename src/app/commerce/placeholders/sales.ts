import { collection } from '../collection';
import type { Outcome, Row } from '../collection';
import { line, pence, totalOf } from './money';
import type { Line, Money } from './money';

interface Customer extends Row {
  readonly name: string;
  readonly email: string | null;
  readonly phone: string | null;
  readonly marketing_consent: boolean;
  readonly loyalty_points: number;
  readonly created_at: string;
}

const PII_SCOPE = 'customers:pii';

/** Customers. Contact data is only for callers with `customers:pii`, also in the response to a creation. */
const customers = collection<
  Customer,
  Pick<Customer, 'name'> & Partial<Pick<Customer, 'email' | 'phone' | 'marketing_consent'>>
>({
  prefix: 'cus',
  sample: [
    customer('Amara Osei', 'amara.osei@example.com', '+442079460101', 1240),
    customer('Bram de Wit', 'bram.dewit@example.com', '+442079460102', 85),
    customer('Chloe Martin', 'chloe.martin@example.com', null, 0),
    customer('Divya Rao', null, '+442079460104', 610),
  ],
  complete: (input, now) => ({
    email: null,
    phone: null,
    marketing_consent: false,
    ...input,
    loyalty_points: 0,
    created_at: now,
  }),
  present: (row, scopes) => (scopes.includes(PII_SCOPE) ? row : { ...row, email: null, phone: null }),
});

function customer(
  name: string,
  email: string | null,
  phone: string | null,
  loyalty_points: number,
): Omit<Customer, 'id'> {
  return { name, email, phone, marketing_consent: true, loyalty_points, created_at: '2025-11-18T10:20:00.000Z' };
}

interface Order extends Row {
  readonly location_id: string;
  readonly customer_id: string | null;
  readonly channel: 'pos' | 'kiosk' | 'web' | 'delivery';
  readonly note: string | null;
  readonly lines: readonly Line[];
  readonly total: Money;
  readonly status: 'open' | 'completed' | 'cancelled';
  readonly cancel_reason: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

/** What is bought. */
const orders = collection<
  Order,
  Pick<Order, 'location_id' | 'channel' | 'lines'> & Partial<Pick<Order, 'customer_id' | 'note'>>
>({
  prefix: 'ord',
  sample: [
    order('pos', 'open', 'cus_0001', [line('itm_0001', 2, 1150), line('itm_0003', 2, 420)]),
    order('kiosk', 'open', null, [line('itm_0004', 1, 360)]),
    order('web', 'completed', 'cus_0002', [line('itm_0005', 3, 895), line('itm_0006', 1, 1400)]),
    order('delivery', 'open', 'cus_0004', [line('itm_0002', 1, 980), line('itm_0003', 1, 420)]),
    { ...order('web', 'cancelled', 'cus_0003', [line('itm_0006', 2, 1400)]), cancel_reason: 'Ordered twice' },
  ],
  complete: (input, now) => ({
    customer_id: null,
    note: null,
    ...input,
    total: totalOf(input.lines),
    status: 'open',
    cancel_reason: null,
    created_at: now,
    updated_at: now,
  }),
  settle: (row, now) => ({ ...row, total: totalOf(row.lines), updated_at: now }),
  actions: { cancel },
});

function cancel(row: Order, { reason }: { readonly reason?: string }, now: string): Outcome<Order> {
  if (row.status !== 'open') return { conflict: `The order is ${row.status}; only open orders can be cancelled.` };
  return { row: { ...row, status: 'cancelled', cancel_reason: reason ?? null, updated_at: now } };
}

function order(
  channel: Order['channel'],
  status: Order['status'],
  customer_id: string | null,
  lines: readonly Line[],
): Omit<Order, 'id'> {
  return {
    location_id: channel === 'pos' || channel === 'kiosk' ? 'loc_0002' : 'loc_0001',
    customer_id,
    channel,
    note: null,
    lines,
    total: totalOf(lines),
    status,
    cancel_reason: null,
    created_at: '2026-03-02T12:04:00.000Z',
    updated_at: '2026-03-02T12:04:00.000Z',
  };
}

interface Refund {
  readonly id: string;
  readonly payment_id: string;
  readonly amount: Money;
  readonly reason: string | null;
  readonly created_at: string;
}

interface Payment extends Row {
  readonly order_id: string;
  readonly amount: Money;
  readonly method: 'card' | 'cash' | 'gift_card';
  readonly status: 'captured' | 'partially_refunded' | 'refunded';
  readonly refunded: Money;
  readonly refunds: readonly Refund[];
  readonly created_at: string;
}

type NewPayment = Pick<Payment, 'order_id' | 'amount' | 'method'>;

/** Money taken, and given back in parts. */
const payments = collection<Payment, NewPayment>({
  prefix: 'pay',
  sample: [
    captured({ order_id: 'ord_0001', amount: pence(3140), method: 'card' }, '2026-03-02T12:05:00.000Z'),
    captured({ order_id: 'ord_0002', amount: pence(360), method: 'cash' }, '2026-03-02T12:05:30.000Z'),
    captured({ order_id: 'ord_0003', amount: pence(4085), method: 'card' }, '2026-03-02T12:06:00.000Z'),
    captured({ order_id: 'ord_0004', amount: pence(1400), method: 'gift_card' }, '2026-03-02T12:07:00.000Z'),
  ],
  complete: captured,
  actions: { refund },
});

/** Refunds are part of the row of their payment: its size must stay bounded. */
const MAX_REFUNDS = 100;

function captured(input: NewPayment, now: string): Omit<Payment, 'id'> {
  const refunded = { amount: 0, currency: input.amount.currency };
  return { ...input, status: 'captured', refunded, refunds: [], created_at: now };
}

function refund(
  row: Payment,
  { amount, reason }: { readonly amount: Money; readonly reason?: string },
  now: string,
): Outcome<Payment> {
  const { amount: paid, refunded } = row;
  if (amount.currency !== paid.currency) {
    return { conflict: `The payment was taken in ${paid.currency}; it cannot be refunded in ${amount.currency}.` };
  }
  const left = paid.amount - refunded.amount;
  if (amount.amount > left) {
    return { conflict: `${left} of ${paid.amount} ${paid.currency} are left to refund; ${amount.amount} is too much.` };
  }
  const number = row.refunds.length + 1;
  if (number > MAX_REFUNDS) return { conflict: `A placeholder books at most ${MAX_REFUNDS} refunds of a payment.` };
  const response: Refund = {
    id: `${row.id}_r${number}`,
    payment_id: row.id,
    amount,
    reason: reason ?? null,
    created_at: now,
  };
  return {
    row: {
      ...row,
      status: amount.amount === left ? 'refunded' : 'partially_refunded',
      refunded: { ...refunded, amount: refunded.amount + amount.amount },
      refunds: [...row.refunds, response],
    },
    response,
  };
}

/** Customers, orders and payments. */
export const SALES = { customers, orders, payments };

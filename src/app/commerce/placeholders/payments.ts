import { collection } from '../collection';
import type { Outcome, Row } from '../collection';
import { pence } from './money';
import type { Money } from './money';

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

interface NewRefund {
  readonly amount: Money;
  readonly reason?: string;
}

/** Money taken, and given back in parts. */
export const payments = collection<Payment, NewPayment>({
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

function refund(row: Payment, { amount, reason }: NewRefund, now: string): Outcome<Payment> {
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

import { collection } from '../collection';
import type { Outcome, Row } from '../collection';
import { line, totalOf } from './money';
import type { Line, Money } from './money';

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

type NewOrder = Pick<Order, 'location_id' | 'channel' | 'lines'> & Partial<Pick<Order, 'customer_id' | 'note'>>;

/** What is bought. */
export const orders = collection<Order, NewOrder>({
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

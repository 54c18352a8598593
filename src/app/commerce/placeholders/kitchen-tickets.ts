import { collection } from '../collection';
import type { Outcome, Row } from '../collection';

interface KitchenLine {
  readonly item_id: string;
  readonly name: string;
  readonly quantity: number;
  readonly note?: string;
}

interface KitchenTicket extends Row {
  readonly order_id: string;
  readonly station: 'grill' | 'fry' | 'cold' | 'bar';
  readonly priority: 'normal' | 'rush';
  readonly lines: readonly KitchenLine[];
  readonly status: (typeof STAGES)[number];
  readonly created_at: string;
  readonly updated_at: string;
}

type NewKitchenTicket = Pick<KitchenTicket, 'order_id' | 'station' | 'lines'> &
  Partial<Pick<KitchenTicket, 'priority'>>;

/** The way of a ticket through the kitchen; each bump is one step. */
const STAGES = ['queued', 'preparing', 'ready', 'served'] as const;

/** What the stations of the kitchen have to prepare. */
export const kitchenTickets = collection<KitchenTicket, NewKitchenTicket>({
  prefix: 'ktk',
  sample: [
    ticket('ord_0001', 'grill', 'preparing', { item_id: 'itm_0001', name: 'Harbour burger', quantity: 2 }),
    ticket('ord_0001', 'bar', 'ready', { item_id: 'itm_0003', name: 'Lemonade', quantity: 2 }),
    ticket('ord_0002', 'bar', 'served', { item_id: 'itm_0004', name: 'Flat white', quantity: 1, note: 'Extra hot' }),
    ticket('ord_0004', 'cold', 'queued', { item_id: 'itm_0002', name: 'Halloumi salad', quantity: 1 }),
  ],
  complete: (input, now) => ({ priority: 'normal', ...input, status: 'queued', created_at: now, updated_at: now }),
  settle: (row, now) => ({ ...row, updated_at: now }),
  actions: { bump },
});

function bump(row: KitchenTicket, _input: object, now: string): Outcome<KitchenTicket> {
  const next = STAGES[STAGES.indexOf(row.status) + 1];
  if (next === undefined) return { conflict: 'The ticket is served already: there is nothing left to do.' };
  return { row: { ...row, status: next, updated_at: now } };
}

function ticket(
  order_id: string,
  station: KitchenTicket['station'],
  status: KitchenTicket['status'],
  line: KitchenLine,
): Omit<KitchenTicket, 'id'> {
  const at = '2026-03-02T12:06:00.000Z';
  return { order_id, station, priority: 'normal', lines: [line], status, created_at: at, updated_at: at };
}

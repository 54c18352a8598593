/** A row of sample data: openapi.yaml gives its other members. */
export interface Row {
  readonly id: string;
}

/** The result of an action: the changed row, and the body of the response if that is not the row; or a conflict. */
export type Outcome = { readonly row: Row; readonly response?: object } | { readonly conflict: string };

/** A request that does more than change members: `POST /v1/orders/{id}/cancel`. */
export interface Action {
  /** Below the resource. Without `{id}`, the member `rowId` of the body names the row. */
  readonly path: string;
  readonly scope: string;
  /** `input` is the body of the request, `now` is RFC 3339. */
  act(row: Row, input: object, now: string): Outcome;
  readonly rowId?: string;
  /** Responds with 201 and something new instead of 200 and the row. */
  readonly creates?: true;
}

/** What is particular to the rows of one resource. */
export interface Rules {
  /** Adds the members of a new row that no body sets. */
  complete?(input: object, now: string): object;
  /** Updates members that depend on others, after a change. */
  settle?(row: Row, now: string): Row;
  /** The row as a caller with these scopes may see it. */
  present?(row: Row, scopes: readonly string[]): Row;
}

/** An amount in minor units (pence, cents). */
interface Money {
  readonly amount: number;
  readonly currency: string;
}

interface Line {
  readonly quantity: number;
  readonly unit_price: Money;
}

/** The sum of some lines, in the currency of the first one. */
function totalOf(lines: readonly Line[]): Money {
  const amount = lines.reduce((sum, { quantity, unit_price }) => sum + quantity * unit_price.amount, 0);
  return { amount, currency: lines[0]?.unit_price.currency ?? 'GBP' };
}

export const inventory: Rules = {
  settle: (row, updated_at) => ({ ...row, updated_at }),
};

interface InventoryLevel extends Row {
  readonly on_hand: number;
  readonly reserved: number;
}

/** `POST /v1/inventory/adjustments`: books a movement of stock. */
export function adjust(
  row: InventoryLevel,
  input: { readonly change: number; readonly note?: string },
  now: string,
): Outcome {
  const on_hand = row.on_hand + input.change;
  if (on_hand < row.reserved) {
    return {
      conflict: `${row.on_hand} are on hand and ${row.reserved} of them reserved: ${-input.change} cannot leave.`,
    };
  }
  return {
    row: { ...row, on_hand, updated_at: now } as Row,
    response: { note: null, ...input, on_hand, created_at: now },
  };
}

/** Contact data is only for callers with `customers:pii`, also in the response to a creation. */
export const customers: Rules = {
  complete: (input, created_at) => ({ ...input, loyalty_points: 0, created_at }),
  present: (row, scopes) => (scopes.includes('customers:pii') ? row : { ...row, email: null, phone: null }),
};

interface Order extends Row {
  readonly lines: readonly Line[];
  readonly status: string;
}

export const orders: Rules = {
  complete(input: Order, now) {
    const dates = { created_at: now, updated_at: now };
    return { ...input, total: totalOf(input.lines), status: 'open', cancel_reason: null, ...dates };
  },
  settle: (row: Order, updated_at) => ({ ...row, total: totalOf(row.lines), updated_at }),
};

/** `POST /v1/orders/{id}/cancel` */
export function cancel(row: Order, { reason = null }: { readonly reason?: string | null }, now: string): Outcome {
  if (row.status !== 'open') return { conflict: `The order is ${row.status}; only open orders can be cancelled.` };
  return { row: { ...row, status: 'cancelled', cancel_reason: reason, updated_at: now } as Row };
}

interface Payment extends Row {
  readonly amount: Money;
  readonly refunded: Money;
  readonly refunds: readonly object[];
}

export const payments: Rules = {
  complete(input: Payment, created_at) {
    const refunded = { amount: 0, currency: input.amount.currency };
    return { ...input, status: 'captured', refunded, refunds: [], created_at };
  },
};

/** Refunds are part of the row of their payment: its size must stay bounded. */
const MAX_REFUNDS = 100;

/** `POST /v1/payments/{id}/refunds`: gives money back, in one or more parts. */
export function refund(
  row: Payment,
  { amount, reason = null }: { readonly amount: Money; readonly reason?: string | null },
  created_at: string,
): Outcome {
  const { amount: paid, refunded, refunds } = row;
  if (amount.currency !== paid.currency) {
    return { conflict: `The payment was taken in ${paid.currency}; it cannot be refunded in ${amount.currency}.` };
  }
  const left = paid.amount - refunded.amount;
  if (amount.amount > left) {
    return { conflict: `${left} of ${paid.amount} ${paid.currency} are left to refund; ${amount.amount} is too much.` };
  }
  const number = refunds.length + 1;
  if (number > MAX_REFUNDS) return { conflict: `A placeholder books at most ${MAX_REFUNDS} refunds of a payment.` };
  const response = { id: `${row.id}_r${number}`, payment_id: row.id, amount, reason, created_at };
  const total = { ...refunded, amount: refunded.amount + amount.amount };
  const status = amount.amount === left ? 'refunded' : 'partially_refunded';
  return { row: { ...row, status, refunded: total, refunds: [...refunds, response] } as Row, response };
}

interface Check extends Row {
  readonly lines: readonly Line[];
  readonly status: string;
}

export const checks: Rules = {
  complete(input: Check, opened_at) {
    return { ...input, total: totalOf(input.lines), status: 'open', opened_at, closed_at: null };
  },
  settle: (row: Check) => ({ ...row, total: totalOf(row.lines) }),
};

/** `POST /v1/checks/{id}/close` */
export function close(row: Check, _input: object, now: string): Outcome {
  if (row.status === 'closed') return { conflict: 'The check is closed already.' };
  return { row: { ...row, status: 'closed', closed_at: now } as Row };
}

interface Reservation extends Row {
  readonly status: string;
}

export const reservations: Rules = {
  complete: (input, created_at) => ({ ...input, status: 'booked', created_at }),
};

/** `POST /v1/reservations/{id}/seat` */
export function seat(row: Reservation, { table_id }: { readonly table_id: string }): Outcome {
  if (row.status === 'booked') return { row: { ...row, status: 'seated', table_id } as Row };
  return { conflict: `The reservation is ${row.status.replace('_', '-')}; only booked guests can be seated.` };
}

interface KitchenTicket extends Row {
  readonly status: string;
}

export const kitchenTickets: Rules = {
  complete: (input, now) => ({ ...input, status: 'queued', created_at: now, updated_at: now }),
  settle: (row, updated_at) => ({ ...row, updated_at }),
};

/** The way of a ticket through the kitchen; each bump is one step. */
const STAGES = ['queued', 'preparing', 'ready', 'served'];

/** `POST /v1/kitchen-tickets/{id}/bump` */
export function bump(row: KitchenTicket, _input: object, updated_at: string): Outcome {
  const status = STAGES[STAGES.indexOf(row.status) + 1];
  if (status === undefined) return { conflict: 'The ticket is served already: there is nothing left to do.' };
  return { row: { ...row, status, updated_at } as Row };
}

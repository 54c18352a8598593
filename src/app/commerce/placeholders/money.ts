/** An amount in minor units (pence, cents). */
export interface Money {
  readonly amount: number;
  /** ISO 4217 code. */
  readonly currency: string;
}

/** One line of an order or a check. */
export interface Line {
  readonly item_id: string;
  readonly quantity: number;
  readonly unit_price: Money;
}

/** An amount in pence, the currency of the sample data. */
export function pence(amount: number): Money {
  return { amount, currency: 'GBP' };
}

/** One line of the sample data, priced in pence. */
export function line(item_id: string, quantity: number, unitPence: number): Line {
  return { item_id, quantity, unit_price: pence(unitPence) };
}

/** The sum of some lines, in the currency of the first one. */
export function totalOf(lines: readonly Line[]): Money {
  const amount = lines.reduce((sum, { quantity, unit_price }) => sum + quantity * unit_price.amount, 0);
  return { amount, currency: lines[0]?.unit_price.currency ?? 'GBP' };
}

import { collection } from '../collection';
import type { Row } from '../collection';

interface Customer extends Row {
  readonly name: string;
  readonly email: string | null;
  readonly phone: string | null;
  readonly marketing_consent: boolean;
  readonly loyalty_points: number;
  readonly created_at: string;
}

type NewCustomer = Pick<Customer, 'name'> & Partial<Pick<Customer, 'email' | 'phone' | 'marketing_consent'>>;

const PII_SCOPE = 'customers:pii';

/** Customers. Contact data is only for callers with `customers:pii`, also in the response to a creation. */
export const customers = collection<Customer, NewCustomer>({
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

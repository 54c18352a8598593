import { collection } from '../collection';
import type { Row } from '../collection';
import { pence } from './money';
import type { Money } from './money';

interface PriceList extends Row {
  readonly name: string;
  readonly currency: string;
  readonly location_ids: readonly string[];
  readonly prices: readonly { readonly item_id: string; readonly price: Money }[];
  readonly valid_from: string;
  readonly valid_until: string | null;
}

type NewPriceList = Omit<PriceList, 'id' | 'valid_until'> & Partial<Pick<PriceList, 'valid_until'>>;

interface Promotion extends Row {
  readonly name: string;
  readonly code: string | null;
  readonly percent_off: number;
  readonly item_ids: readonly string[];
  readonly starts_at: string;
  readonly ends_at: string;
  readonly status: 'draft' | 'active' | 'ended';
}

type NewPromotion = Omit<Promotion, 'id' | 'code' | 'status'> & Partial<Pick<Promotion, 'code' | 'status'>>;

/** Prices that hold at some locations for some time. */
export const priceLists = collection<PriceList, NewPriceList>({
  prefix: 'prl',
  sample: [
    {
      name: 'Restaurant',
      currency: 'GBP',
      location_ids: ['loc_0002'],
      prices: [
        { item_id: 'itm_0001', price: pence(1250) },
        { item_id: 'itm_0003', price: pence(450) },
      ],
      valid_from: '2026-01-01T00:00:00.000Z',
      valid_until: null,
    },
    {
      name: 'Station kiosk',
      currency: 'GBP',
      location_ids: ['loc_0004'],
      prices: [{ item_id: 'itm_0004', price: pence(390) }],
      valid_from: '2026-01-01T00:00:00.000Z',
      valid_until: null,
    },
    {
      name: 'January sale',
      currency: 'GBP',
      location_ids: ['loc_0001', 'loc_0004'],
      prices: [{ item_id: 'itm_0006', price: pence(990) }],
      valid_from: '2026-01-02T00:00:00.000Z',
      valid_until: '2026-02-01T00:00:00.000Z',
    },
  ],
  complete: (input) => ({ valid_until: null, ...input }),
});

/** Discounts for some time. */
export const promotions = collection<Promotion, NewPromotion>({
  prefix: 'prm',
  sample: [
    {
      name: 'Coffee week',
      code: 'COFFEE20',
      percent_off: 20,
      item_ids: ['itm_0004', 'itm_0005'],
      starts_at: '2026-03-02T00:00:00.000Z',
      ends_at: '2026-03-08T23:59:59.000Z',
      status: 'active',
    },
    {
      name: 'Staff meal',
      code: 'STAFF50',
      percent_off: 50,
      item_ids: ['itm_0001', 'itm_0002'],
      starts_at: '2026-01-01T00:00:00.000Z',
      ends_at: '2026-12-31T23:59:59.000Z',
      status: 'active',
    },
    {
      name: 'Mother’s Day lunch',
      code: null,
      percent_off: 10,
      item_ids: ['itm_0002', 'itm_0003'],
      starts_at: '2026-03-15T11:00:00.000Z',
      ends_at: '2026-03-15T16:00:00.000Z',
      status: 'draft',
    },
  ],
  complete: (input) => ({ code: null, status: 'draft', ...input }),
});

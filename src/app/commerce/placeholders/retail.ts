import { collection } from '../collection';
import type { Outcome, Row } from '../collection';
import { pence } from './money';
import type { Money } from './money';

interface Location extends Row {
  readonly name: string;
  readonly kind: 'store' | 'restaurant' | 'warehouse';
  readonly address: {
    readonly street: string;
    readonly city: string;
    readonly postal_code: string;
    readonly country: string;
  };
  readonly time_zone: string;
  readonly status: 'open' | 'closed';
}

const TIME_ZONE = 'Europe/London';

/** Stores, restaurants and warehouses. */
const locations = collection<Location, Omit<Location, 'id' | 'status'> & Partial<Pick<Location, 'status'>>>({
  prefix: 'loc',
  sample: [
    {
      name: 'High Street store',
      kind: 'store',
      address: { street: '48 High Street', city: 'Bristol', postal_code: 'BS1 2AW', country: 'GB' },
      time_zone: TIME_ZONE,
      status: 'open',
    },
    {
      name: 'The Harbour Kitchen',
      kind: 'restaurant',
      address: { street: '3 Quayside', city: 'Bristol', postal_code: 'BS1 4RB', country: 'GB' },
      time_zone: TIME_ZONE,
      status: 'open',
    },
    {
      name: 'Avonmouth warehouse',
      kind: 'warehouse',
      address: { street: '9 Dock Road', city: 'Bristol', postal_code: 'BS11 9DQ', country: 'GB' },
      time_zone: TIME_ZONE,
      status: 'open',
    },
    {
      name: 'Station kiosk',
      kind: 'store',
      address: { street: 'Platform 3, Central Station', city: 'Bath', postal_code: 'BA1 1SU', country: 'GB' },
      time_zone: TIME_ZONE,
      status: 'closed',
    },
  ],
  complete: (input) => ({ status: 'open', ...input }),
});

interface Item extends Row {
  readonly sku: string;
  readonly name: string;
  readonly description: string | null;
  readonly category_id: string | null;
  readonly price: Money;
  readonly status: 'active' | 'archived';
}

interface Category extends Row {
  readonly name: string;
  readonly parent_id: string | null;
  readonly position: number;
}

/** Products on the shelf and dishes on the menu. */
const items = collection<
  Item,
  Pick<Item, 'sku' | 'name' | 'price'> & Partial<Pick<Item, 'description' | 'category_id' | 'status'>>
>({
  prefix: 'itm',
  sample: [
    item('DSH-0001', 'Harbour burger', 'Beef, cheddar, pickles', 'cat_0001', 1150),
    item('DSH-0002', 'Halloumi salad', 'Grilled halloumi, leaves, pomegranate', 'cat_0001', 980),
    item('DRK-0001', 'Lemonade', 'Made here every morning', 'cat_0003', 420),
    item('DRK-0002', 'Flat white', null, 'cat_0004', 360),
    item('RET-0001', 'House coffee beans 250 g', 'Medium roast', 'cat_0005', 895),
    item('RET-0002', 'Enamel mug', null, 'cat_0005', 1400),
    { ...item('DSH-0003', 'Pumpkin soup', 'Winter only', 'cat_0001', 690), status: 'archived' },
  ],
  complete: (input) => ({ description: null, category_id: null, status: 'active', ...input }),
});

/** Shelves and menu groups. */
const categories = collection<Category, Pick<Category, 'name'> & Partial<Pick<Category, 'parent_id' | 'position'>>>({
  prefix: 'cat',
  sample: [
    { name: 'Dishes', parent_id: null, position: 1 },
    { name: 'Drinks', parent_id: null, position: 2 },
    { name: 'Cold drinks', parent_id: 'cat_0002', position: 1 },
    { name: 'Coffee', parent_id: 'cat_0002', position: 2 },
    { name: 'Take home', parent_id: null, position: 3 },
  ],
  complete: (input) => ({ parent_id: null, position: 0, ...input }),
});

function item(
  sku: string,
  name: string,
  description: string | null,
  category_id: string,
  unitPence: number,
): Omit<Item, 'id'> {
  return { sku, name, description, category_id, price: pence(unitPence), status: 'active' };
}

interface InventoryLevel extends Row {
  readonly item_id: string;
  readonly location_id: string;
  readonly on_hand: number;
  readonly reserved: number;
  readonly reorder_point: number;
  readonly updated_at: string;
}

/** Stock per item and location. Levels come with items and locations: they cannot be created. */
const inventory = collection<InventoryLevel, Omit<InventoryLevel, 'id'>>({
  prefix: 'inv',
  sample: [
    level('itm_0005', 'loc_0001', 64, 4, 24),
    level('itm_0006', 'loc_0001', 18, 0, 12),
    level('itm_0005', 'loc_0003', 960, 120, 240),
    level('itm_0006', 'loc_0003', 310, 0, 100),
    level('itm_0003', 'loc_0002', 35, 2, 20),
  ],
  complete: (input) => input,
  settle: (row, now) => ({ ...row, updated_at: now }),
  actions: { adjust },
});

function adjust(
  row: InventoryLevel,
  adjustment: {
    readonly inventory_id: string;
    readonly change: number;
    readonly reason: string;
    readonly note?: string;
  },
  now: string,
): Outcome<InventoryLevel> {
  const { inventory_id, change, reason, note = null } = adjustment;
  const on_hand = row.on_hand + change;
  if (on_hand < row.reserved) {
    return { conflict: `${row.on_hand} are on hand and ${row.reserved} of them reserved: ${-change} cannot leave.` };
  }
  return {
    row: { ...row, on_hand, updated_at: now },
    response: { inventory_id, change, reason, note, on_hand, created_at: now },
  };
}

function level(
  item_id: string,
  location_id: string,
  on_hand: number,
  reserved: number,
  reorder_point: number,
): Omit<InventoryLevel, 'id'> {
  return { item_id, location_id, on_hand, reserved, reorder_point, updated_at: '2026-03-02T06:30:00.000Z' };
}

interface PriceList extends Row {
  readonly name: string;
  readonly currency: string;
  readonly location_ids: readonly string[];
  readonly prices: readonly { readonly item_id: string; readonly price: Money }[];
  readonly valid_from: string;
  readonly valid_until: string | null;
}

interface Promotion extends Row {
  readonly name: string;
  readonly code: string | null;
  readonly percent_off: number;
  readonly item_ids: readonly string[];
  readonly starts_at: string;
  readonly ends_at: string;
  readonly status: 'draft' | 'active' | 'ended';
}

/** Prices that hold at some locations for some time. */
const priceLists = collection<
  PriceList,
  Omit<PriceList, 'id' | 'valid_until'> & Partial<Pick<PriceList, 'valid_until'>>
>({
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
const promotions = collection<
  Promotion,
  Omit<Promotion, 'id' | 'code' | 'status'> & Partial<Pick<Promotion, 'code' | 'status'>>
>({
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

/** Locations, what is sold there, stock and prices. */
export const RETAIL = { locations, items, categories, inventory, 'price-lists': priceLists, promotions };

import { collection } from '../collection';
import { pence } from './money';

/** Stores, restaurants and warehouses. */
const locations = collection({
  prefix: 'loc',
  sample: [
    location('High Street store', 'store', ['48 High Street', 'Bristol', 'BS1 2AW'], 'open'),
    location('The Harbour Kitchen', 'restaurant', ['3 Quayside', 'Bristol', 'BS1 4RB'], 'open'),
    location('Avonmouth warehouse', 'warehouse', ['9 Dock Road', 'Bristol', 'BS11 9DQ'], 'open'),
    location('Station kiosk', 'store', ['Platform 3, Central Station', 'Bath', 'BA1 1SU'], 'closed'),
  ],
  defaults: { status: 'open' },
});

function location(name: string, kind: string, [street, city, postal_code]: readonly string[], status: string) {
  return { name, kind, address: { street, city, postal_code, country: 'GB' }, time_zone: 'Europe/London', status };
}

/** Products on the shelf and dishes on the menu. */
const items = collection({
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
  defaults: { description: null, category_id: null, status: 'active' },
});

/** Shelves and menu groups. */
const categories = collection({
  prefix: 'cat',
  sample: [
    { name: 'Dishes', parent_id: null, position: 1 },
    { name: 'Drinks', parent_id: null, position: 2 },
    { name: 'Cold drinks', parent_id: 'cat_0002', position: 1 },
    { name: 'Coffee', parent_id: 'cat_0002', position: 2 },
    { name: 'Take home', parent_id: null, position: 3 },
  ],
  defaults: { parent_id: null, position: 0 },
});

function item(sku: string, name: string, description: string | null, category_id: string, unitPence: number) {
  return { sku, name, description, category_id, price: pence(unitPence), status: 'active' };
}

/** Stock per item and location. Levels come with items and locations: they cannot be created. */
const inventory = collection({
  prefix: 'inv',
  sample: [
    level('itm_0005', 'loc_0001', 64, 4, 24),
    level('itm_0006', 'loc_0001', 18, 0, 12),
    level('itm_0005', 'loc_0003', 960, 120, 240),
    level('itm_0006', 'loc_0003', 310, 0, 100),
    level('itm_0003', 'loc_0002', 35, 2, 20),
  ],
  settle: (row, now) => ({ ...row, updated_at: now }),
  actions: {
    adjust(row, { inventory_id, change, reason, note = null }, now) {
      const on_hand = row.on_hand + Number(change);
      if (on_hand < row.reserved) {
        return {
          conflict: `${row.on_hand} are on hand and ${row.reserved} of them reserved: ${-Number(change)} cannot leave.`,
        };
      }
      return {
        row: { ...row, on_hand, updated_at: now },
        response: { inventory_id, change, reason, note, on_hand, created_at: now },
      };
    },
  },
});

function level(item_id: string, location_id: string, on_hand: number, reserved: number, reorder_point: number) {
  return { item_id, location_id, on_hand, reserved, reorder_point, updated_at: '2026-03-02T06:30:00.000Z' };
}

/** Prices that hold at some locations for some time. */
const priceLists = collection({
  prefix: 'prl',
  sample: [
    priceList('Restaurant', ['loc_0002'], { itm_0001: 1250, itm_0003: 450 }, '2026-01-01', null),
    priceList('Station kiosk', ['loc_0004'], { itm_0004: 390 }, '2026-01-01', null),
    priceList('January sale', ['loc_0001', 'loc_0004'], { itm_0006: 990 }, '2026-01-02', '2026-02-01T00:00:00.000Z'),
  ],
  defaults: { valid_until: null },
});

function priceList(name: string, location_ids: string[], amounts: object, from: string, valid_until: string | null) {
  const prices = Object.entries(amounts).map(([item_id, amount]) => ({ item_id, price: pence(Number(amount)) }));
  return { name, currency: 'GBP', location_ids, prices, valid_from: `${from}T00:00:00.000Z`, valid_until };
}

/** Discounts for some time. */
const promotions = collection({
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
  defaults: { code: null, status: 'draft' },
});

/** Locations, what is sold there, stock and prices. */
export const RETAIL = { locations, items, categories, inventory, 'price-lists': priceLists, promotions };

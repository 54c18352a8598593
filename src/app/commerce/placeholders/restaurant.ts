import { collection } from '../collection';
import { line, pence, totalOf } from './money';
import type { Line } from './money';

/** What the restaurant offers at which time. */
const menus = collection({
  prefix: 'mnu',
  sample: [
    menu('Lunch', '12:00', '16:00', 'published'),
    menu('Dinner', '18:00', '22:30', 'published'),
    menu('Spring', '12:00', '22:30', 'draft'),
  ],
  defaults: { status: 'draft' },
});

/** Choices that go with items. */
const modifierGroups = collection({
  prefix: 'mod',
  sample: [
    group('How would you like it?', ['itm_0001'], 1, 1, { Pink: 0, 'Well done': 0 }),
    group('Extras', ['itm_0001', 'itm_0002'], 0, 3, { Bacon: 150, Halloumi: 180, Fries: 320 }),
    group('Size', ['itm_0003', 'itm_0004'], 1, 1, { Regular: 0, Large: 60 }),
  ],
});

function group(name: string, item_ids: string[], min_choices: number, max_choices: number, prices: object) {
  const modifiers = Object.entries(prices).map(([modifier, amount]) => ({
    name: modifier,
    price: pence(Number(amount)),
  }));
  return { name, item_ids, min_choices, max_choices, modifiers };
}

function menu(name: string, served_from: string, served_until: string, status: string) {
  const sections = [
    { name: 'Plates', item_ids: ['itm_0001', 'itm_0002'] },
    { name: 'Drinks', item_ids: ['itm_0003', 'itm_0004'] },
  ];
  return { name, location_ids: ['loc_0002'], sections, served_from, served_until, status };
}

const LOCATION = 'loc_0002';
const OPENED_AT = '2026-03-02T12:31:00.000Z';

/** Where guests sit. */
const tables = collection({
  prefix: 'tbl',
  sample: [
    { location_id: LOCATION, name: 'T1', seats: 2, area: 'dining_room', status: 'occupied' },
    { location_id: LOCATION, name: 'T2', seats: 4, area: 'dining_room', status: 'free' },
    { location_id: LOCATION, name: 'T3', seats: 6, area: 'terrace', status: 'free' },
    { location_id: LOCATION, name: 'B1', seats: 1, area: 'bar', status: 'occupied' },
  ],
  defaults: { status: 'free' },
});

/** The bills of tables. */
const checks = collection({
  prefix: 'chk',
  sample: [
    check('tbl_0001', 2, [line('itm_0001', 1, 1250), line('itm_0002', 1, 980), line('itm_0003', 2, 450)]),
    check('tbl_0004', 1, [line('itm_0004', 1, 360)]),
    { ...check('tbl_0002', 3, [line('itm_0001', 3, 1250)]), status: 'closed', closed_at: '2026-03-02T13:40:00.000Z' },
  ],
  defaults: { table_id: null, lines: [] },
  complete: (input, now) => {
    return { ...input, total: totalOf(input.lines), status: 'open', opened_at: now, closed_at: null };
  },
  settle: (row) => ({ ...row, total: totalOf(row.lines) }),
  actions: {
    close(row, _input, now) {
      if (row.status === 'closed') return { conflict: 'The check is closed already.' };
      return { row: { ...row, status: 'closed', closed_at: now } };
    },
  },
});

function check(table_id: string, guests: number, lines: readonly Line[]) {
  const total = totalOf(lines);
  return {
    location_id: LOCATION,
    table_id,
    guests,
    lines,
    total,
    status: 'open',
    opened_at: OPENED_AT,
    closed_at: null,
  };
}

/** Tables promised to guests. */
const reservations = collection({
  prefix: 'rsv',
  sample: [
    reservation('Lindqvist', 2, '2026-03-02T18:30:00.000Z', 'booked', 'tbl_0001'),
    reservation('Adeyemi', 5, '2026-03-02T19:00:00.000Z', 'booked', 'tbl_0003'),
    reservation('Rossi', 4, '2026-03-02T12:30:00.000Z', 'seated', 'tbl_0002'),
    reservation('Kowalska', 2, '2026-03-01T20:00:00.000Z', 'no_show', null),
  ],
  defaults: { table_id: null },
  complete: (input, now) => ({ ...input, status: 'booked', created_at: now }),
  actions: {
    seat(row, { table_id }) {
      if (row.status === 'booked') return { row: { ...row, status: 'seated', table_id } };
      return { conflict: `The reservation is ${row.status.replace('_', '-')}; only booked guests can be seated.` };
    },
  },
});

function reservation(
  guest_name: string,
  party_size: number,
  starts_at: string,
  status: string,
  table_id: string | null,
) {
  const created_at = '2026-02-20T17:45:00.000Z';
  return { location_id: LOCATION, guest_name, party_size, starts_at, table_id, status, created_at };
}

/** The way of a ticket through the kitchen; each bump is one step. */
const STAGES = ['queued', 'preparing', 'ready', 'served'];

/** What the stations of the kitchen have to prepare. */
const kitchenTickets = collection({
  prefix: 'ktk',
  sample: [
    ticket('ord_0001', 'grill', 'preparing', { item_id: 'itm_0001', name: 'Harbour burger', quantity: 2 }),
    ticket('ord_0001', 'bar', 'ready', { item_id: 'itm_0003', name: 'Lemonade', quantity: 2 }),
    ticket('ord_0002', 'bar', 'served', { item_id: 'itm_0004', name: 'Flat white', quantity: 1, note: 'Extra hot' }),
    ticket('ord_0004', 'cold', 'queued', { item_id: 'itm_0002', name: 'Halloumi salad', quantity: 1 }),
  ],
  defaults: { priority: 'normal' },
  complete: (input, now) => ({ ...input, status: 'queued', created_at: now, updated_at: now }),
  settle: (row, now) => ({ ...row, updated_at: now }),
  actions: {
    bump(row, _input, now) {
      const next = STAGES[STAGES.indexOf(row.status) + 1];
      if (next === undefined) return { conflict: 'The ticket is served already: there is nothing left to do.' };
      return { row: { ...row, status: next, updated_at: now } };
    },
  },
});

function ticket(order_id: string, station: string, status: string, line: object) {
  const at = '2026-03-02T12:06:00.000Z';
  return { order_id, station, priority: 'normal', lines: [line], status, created_at: at, updated_at: at };
}

/** Menus, tables and the kitchen. */
export const RESTAURANT = {
  menus,
  'modifier-groups': modifierGroups,
  tables,
  checks,
  reservations,
  'kitchen-tickets': kitchenTickets,
};

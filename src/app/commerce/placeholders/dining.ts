import { collection } from '../collection';
import type { Outcome, Row } from '../collection';
import { line, totalOf } from './money';
import type { Line, Money } from './money';

interface Table extends Row {
  readonly location_id: string;
  readonly name: string;
  readonly seats: number;
  readonly area: 'dining_room' | 'bar' | 'terrace';
  readonly status: 'free' | 'occupied' | 'out_of_service';
}

type NewTable = Omit<Table, 'id' | 'status'> & Partial<Pick<Table, 'status'>>;

interface Check extends Row {
  readonly location_id: string;
  readonly table_id: string | null;
  readonly guests: number;
  readonly lines: readonly Line[];
  readonly total: Money;
  readonly status: 'open' | 'closed';
  readonly opened_at: string;
  readonly closed_at: string | null;
}

type NewCheck = Pick<Check, 'location_id' | 'guests'> & Partial<Pick<Check, 'table_id' | 'lines'>>;

const LOCATION = 'loc_0002';
const OPENED_AT = '2026-03-02T12:31:00.000Z';

/** Where guests sit. */
export const tables = collection<Table, NewTable>({
  prefix: 'tbl',
  sample: [
    { location_id: LOCATION, name: 'T1', seats: 2, area: 'dining_room', status: 'occupied' },
    { location_id: LOCATION, name: 'T2', seats: 4, area: 'dining_room', status: 'free' },
    { location_id: LOCATION, name: 'T3', seats: 6, area: 'terrace', status: 'free' },
    { location_id: LOCATION, name: 'B1', seats: 1, area: 'bar', status: 'occupied' },
  ],
  complete: (input) => ({ status: 'free', ...input }),
});

/** The bills of tables. */
export const checks = collection<Check, NewCheck>({
  prefix: 'chk',
  sample: [
    check('tbl_0001', 2, [line('itm_0001', 1, 1250), line('itm_0002', 1, 980), line('itm_0003', 2, 450)]),
    check('tbl_0004', 1, [line('itm_0004', 1, 360)]),
    { ...check('tbl_0002', 3, [line('itm_0001', 3, 1250)]), status: 'closed', closed_at: '2026-03-02T13:40:00.000Z' },
  ],
  complete: (input, now) => {
    const { lines = [], table_id = null } = input;
    return { ...input, table_id, lines, total: totalOf(lines), status: 'open', opened_at: now, closed_at: null };
  },
  settle: (row) => ({ ...row, total: totalOf(row.lines) }),
  actions: { close },
});

function close(row: Check, _input: object, now: string): Outcome<Check> {
  if (row.status === 'closed') return { conflict: 'The check is closed already.' };
  return { row: { ...row, status: 'closed', closed_at: now } };
}

function check(table_id: string, guests: number, lines: readonly Line[]): Omit<Check, 'id'> {
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

import { collection } from '../collection';
import type { Outcome, Row } from '../collection';

interface Reservation extends Row {
  readonly location_id: string;
  readonly guest_name: string;
  readonly party_size: number;
  readonly starts_at: string;
  readonly table_id: string | null;
  readonly status: 'booked' | 'seated' | 'cancelled' | 'no_show';
  readonly created_at: string;
}

type NewReservation = Pick<Reservation, 'location_id' | 'guest_name' | 'party_size' | 'starts_at'> &
  Partial<Pick<Reservation, 'table_id'>>;

/** Tables promised to guests. */
export const reservations = collection<Reservation, NewReservation>({
  prefix: 'rsv',
  sample: [
    reservation('Lindqvist', 2, '2026-03-02T18:30:00.000Z', 'booked', 'tbl_0001'),
    reservation('Adeyemi', 5, '2026-03-02T19:00:00.000Z', 'booked', 'tbl_0003'),
    reservation('Rossi', 4, '2026-03-02T12:30:00.000Z', 'seated', 'tbl_0002'),
    reservation('Kowalska', 2, '2026-03-01T20:00:00.000Z', 'no_show', null),
  ],
  complete: (input, now) => ({ table_id: null, ...input, status: 'booked', created_at: now }),
  actions: { seat },
});

function seat(row: Reservation, { table_id }: { readonly table_id: string }): Outcome<Reservation> {
  if (row.status !== 'booked') {
    return { conflict: `The reservation is ${row.status.replace('_', '-')}; only booked guests can be seated.` };
  }
  return { row: { ...row, status: 'seated', table_id } };
}

function reservation(
  guest_name: string,
  party_size: number,
  starts_at: string,
  status: Reservation['status'],
  table_id: string | null,
): Omit<Reservation, 'id'> {
  const created_at = '2026-02-20T17:45:00.000Z';
  return { location_id: 'loc_0002', guest_name, party_size, starts_at, table_id, status, created_at };
}

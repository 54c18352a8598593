import { setImmediate as turn } from 'node:timers/promises';
import type { ClientRow, State, Tombstone } from './state';

/** A floor with the revision at which it moved. */
export type MovedFloor = Pick<ClientRow | Tombstone, 'clientId' | 'generation' | 'movedAt'>;

/** Rows that are looked at in one go: some 5 ms of work. */
const SLICE = 50_000;

/** The floors that moved at or after a revision, in no order. */
export function floorsSince(state: State, revision: number): MovedFloor[] {
  const moved: MovedFloor[] = [];
  for (const row of rowsOf(state)) if (row.movedAt >= revision) moved.push(row);
  return moved;
}

/** The same of a state that may be large: other requests get their turn meanwhile. */
export async function collectFloorsSince(state: State, revision: number): Promise<MovedFloor[]> {
  const moved: MovedFloor[] = [];
  let looked = 0;
  for (const row of rowsOf(state)) {
    if (row.movedAt >= revision) moved.push(row);
    if (++looked % SLICE === 0) await turn();
  }
  return moved;
}

function* rowsOf({ clients, tombstones }: State): Generator<MovedFloor, void, undefined> {
  yield* clients.values();
  yield* tombstones.values();
}

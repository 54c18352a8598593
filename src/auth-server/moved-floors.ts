import { forEachInTurns } from './in-turns';
import type { ClientRow, State, Tombstone } from './state';

/** A floor with the revision at which it moved. */
export type MovedFloor = Pick<ClientRow | Tombstone, 'clientId' | 'generation' | 'movedAt'>;

/** The floors that moved at or after a revision, in no order. */
export function floorsSince(state: State, revision: number): MovedFloor[] {
  return [...rowsOf(state)].filter(({ movedAt }) => movedAt >= revision);
}

/** The same of a state that may be large: other requests get their turn meanwhile. */
export async function collectFloorsSince(state: State, revision: number): Promise<MovedFloor[]> {
  const moved: MovedFloor[] = [];
  await forEachInTurns(rowsOf(state), (row) => {
    if (row.movedAt >= revision) moved.push(row);
  });
  return moved;
}

function* rowsOf({ clients, tombstones }: State): Generator<MovedFloor, void, undefined> {
  yield* clients.values();
  yield* tombstones.values();
}

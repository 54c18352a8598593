import { setImmediate as turn } from 'node:timers/promises';
import type { Response } from 'express';
import type { Schedule } from '../../core/clock';
import type { ClientRow, State, Tombstone } from '../storage/state';

/** A floor with the revision of its last change. */
export type MovedFloor = Pick<ClientRow | Tombstone, 'clientId' | 'generation' | 'movedAt'>;

/** Floors that are looked at in one go: about 5 ms of work. */
const SLICE = 20_000;
/** A reader that takes nothing for this long is dropped. */
const LONGEST_STALL_MS = 15_000;

/** The floors that changed at or after a revision, in any order. */
export function floorsSince(state: State, revision: number): MovedFloor[] {
  return [...rowsOf(state)].filter(({ movedAt }) => movedAt >= revision);
}

/** `floorsSince` for a state that may be large: other requests are served in between. */
export async function collectFloorsSince(state: State, revision: number): Promise<MovedFloor[]> {
  const moved: MovedFloor[] = [];
  let seen = 0;
  for (const row of rowsOf(state)) {
    if (row.movedAt >= revision) moved.push(row);
    if (++seen % SLICE === 0) await turn();
  }
  return moved;
}

/** Resolves when the reader of a long response takes more, or is gone. */
export function drained(res: Response, schedule: Schedule): Promise<void> {
  return new Promise((resolve) => {
    const deadline = schedule(() => res.destroy(), LONGEST_STALL_MS);
    function done(): void {
      deadline.cancel();
      res.off('drain', done).off('close', done);
      resolve();
    }
    res.on('drain', done).on('close', done);
  });
}

/** Whether nothing more can be written. */
export function isOver(res: Response): boolean {
  return res.destroyed || res.writableEnded;
}

function* rowsOf({ clients, tombstones }: State): Generator<MovedFloor, void, undefined> {
  yield* clients.values();
  yield* tombstones.values();
}

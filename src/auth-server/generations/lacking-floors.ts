import { setImmediate as turn } from 'node:timers/promises';
import { noResponse } from '../../generation/source-error';
import { withTimeLimit } from '../../core/time-limit';
import type { Schedule } from '../../core/clock';
import type { Floor, GenerationSource } from '../../generation/source';
import { collectFloorsSince } from './floors';
import type { Publisher } from './publisher';
import type { Store } from '../storage/store';

/** What is held against what. */
export interface Comparison {
  readonly source: GenerationSource;
  readonly store: Pick<Store, 'state'>;
  readonly publisher: Publisher;
  readonly schedule: Schedule;
}

/** What the token server holds, but for what the publisher is about to say anyway. */
export async function heldFloors({ store, publisher }: Omit<Comparison, 'source'>): Promise<Floor[]> {
  const held: Floor[] = [];
  await forEachInTurns(await collectFloorsSince(store.state, 0), ({ clientId, generation }) => {
    if (!publisher.owes(clientId)) held.push([clientId, generation]);
  });
  return held;
}

/**
 * Reads the source whole and answers what it has lost, or never had.
 *
 * @throws whatever the source rejects with, or SourceError when it has not answered after `timeoutMs`.
 */
export async function lackingFloors(comparison: Comparison, timeoutMs: number): Promise<Floor[]> {
  const { source, schedule } = comparison;
  // In this order: what changes after this look is on its way to the source by itself.
  const ours = await heldFloors(comparison);
  const reading = (async () => source.read(0))();
  const { floors } = await withTimeLimit(reading, timeoutMs, schedule, noResponse);
  const theirs = new Map<string, number>();
  await forEachInTurns(floors, ([clientId, generation]) => {
    theirs.set(clientId, Math.max(generation, theirs.get(clientId) ?? 0));
  });
  const lacking: Floor[] = [];
  await forEachInTurns(ours, (floor) => {
    if ((theirs.get(floor[0]) ?? -1) < floor[1]) lacking.push(floor);
  });
  return lacking;
}

/** Items that are looked at in one go: some 5 ms of work. */
const SLICE = 20_000;

/** Looks at every item; where there are many, other requests get their turn in between. */
async function forEachInTurns<Item>(items: Iterable<Item>, look: (item: Item) => void): Promise<void> {
  let looked = 0;
  for (const item of items) {
    look(item);
    if (++looked % SLICE === 0) await turn();
  }
}

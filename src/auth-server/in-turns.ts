import { setImmediate as turn } from 'node:timers/promises';

/** Items that are looked at in one go: some 5 ms of work. */
const SLICE = 20_000;

/** Looks at every item; where there are many, other requests get their turn in between. */
export async function forEachInTurns<Item>(items: Iterable<Item>, look: (item: Item) => void): Promise<void> {
  let looked = 0;
  for (const item of items) {
    look(item);
    if (++looked % SLICE === 0) await turn();
  }
}

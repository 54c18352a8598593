import { setImmediate as turn } from 'node:timers/promises';
import { PAGE } from './floor-set';
import type { FloorSet } from './floor-set';
import type { Page } from './page';
import type { TakePage } from '../source';

/** Windows that are planned together. */
const WINDOWS = 64;
/** Commands on their way at a time: Redis works on the next window while this one is merged. */
const IN_FLIGHT = 3;
/** Members of one reply, if more have entered a window than were planned. */
const MAX_WINDOW = 2 * PAGE;

/**
 * Hands over the whole set: every member that is in it now and is not removed meanwhile.
 *
 * A set of more than one page is read in windows of ascending scores, which takes less of the server's time than ZSCAN, and
 * whose commands need not wait for each other. No floor is skipped: it only rises, and Redis runs the commands in order, so
 * a floor that has not been read yet lies in a window that is still to come. Where too many members have the same score
 * for a window, ZSCAN goes on: it returns every member that is in the set from its start to its end.
 */
export async function readWhole(set: FloorSet, take: TakePage): Promise<void> {
  let page = await set.scanPage('0', PAGE);
  await take(page.floors);
  if (page.cursor === '0' || (await ascend(set, take))) return;
  while (page.cursor !== '0') {
    page = await set.scanPage(page.cursor, PAGE);
    await take(page.floors);
  }
}

/** Returns `false` if too many members have the same score. */
async function ascend(set: FloorSet, take: TakePage): Promise<boolean> {
  for (let from = -Infinity; from < Infinity;) {
    const reached = await readWindows(set, await edgesFrom(set, from), take);
    if (reached === from) return false;
    from = reached;
  }
  return true;
}

/** The edges of the next windows, in ascending order; the last ones end with `Infinity`. */
async function edgesFrom(set: FloorSet, from: number): Promise<readonly number[]> {
  const rank = from === -Infinity ? 0 : await set.count(-Infinity, from);
  const ranks = Array.from({ length: WINDOWS }, (_, index) => rank + (index + 1) * PAGE);
  const scores = await Promise.all(ranks.map((at) => set.scoreAt(at, 'ascending')));
  const inner = scores.filter((score): score is number => score !== undefined && score > from);
  const edges = [...new Set(inner)].sort((a, b) => a - b);
  return [from, ...edges, ...(scores.includes(undefined) ? [Infinity] : [])];
}

/** Returns the score up to which it has read: the last edge, unless a window has more members than one reply. */
async function readWindows(set: FloorSet, edges: readonly number[], take: TakePage): Promise<number> {
  const replies: Promise<Page>[] = [];
  let sent = 1;
  for (let read = 1; read < edges.length; read++) {
    for (; sent < edges.length && replies.length < IN_FLIGHT; sent++) {
      const reply = set.window(edges[sent - 1] as number, edges[sent] as number, MAX_WINDOW);
      reply.catch(() => undefined);
      replies.push(reply);
    }
    const { floors, size, lastScore } = (await replies.shift()) as Page;
    await take(floors);
    // The windows after this one were read too early for the rest of it.
    if (size === MAX_WINDOW) return lastScore;
    // A socket that never runs dry would not let go of the event loop.
    await turn();
  }
  return edges.at(-1) as number;
}

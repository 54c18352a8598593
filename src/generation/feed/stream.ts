import type { ServerResponse } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import type { Schedule, Timer } from '../../core/clock';
import { toEntry } from './feed';
import type { Feed } from './feed';

/** A reader that receives nothing for three of them gives up the connection. */
const HEARTBEAT_MS = 15_000;
/** A reader that takes nothing for this long is dropped. */
const MAX_STALL_MS = 15_000;
/** Events per write: about a millisecond of work. */
const SLICE = 1_000;

/**
 * Moves from a time on, as events, until the connection or the feed is closed. A slow reader gets the latest floors, not
 * every step.
 */
export async function* changesOf(
  feed: Feed,
  fromMs: number,
  res: ServerResponse,
): AsyncGenerator<string, void, undefined> {
  let nextMs = fromMs;
  let { interruptions } = feed;
  let wake = (): void => {};
  const unsubscribe = feed.subscribe(() => wake());
  res.once('close', () => wake());
  try {
    while (!isOver(res) && !feed.closed) {
      // Before the floors are read: a move in between must wake too.
      const woken = new Promise<void>((resolve) => (wake = resolve));
      const view = feed.view();
      // Readers that were refused meanwhile ask again.
      if (feed.interruptions > interruptions) yield 'event: resumed\ndata: {}\n\n';
      ({ interruptions } = feed);
      const moved = await view?.movedSince(nextMs, true);
      let events = '';
      let count = 0;
      for (const floor of moved?.floors ?? []) {
        if (feed.closed) return;
        nextMs = floor.movedAt + 1;
        events += `id: ${floor.movedAt}\nevent: generation\ndata: ${toEntry(floor)}\n\n`;
        if (++count % SLICE > 0) continue;
        yield events;
        events = '';
      }
      if (events !== '') yield events;
      if (count === 0) await woken;
    }
  } finally {
    unsubscribe();
  }
}

/** The first comment shows the reader that the stream is open. */
export function startHeartbeat(res: ServerResponse, schedule: Schedule): void {
  let timer: Timer | undefined;
  function beat(): void {
    if (!res.writableNeedDrain && !isOver(res)) res.write(':\n\n');
    timer = schedule(beat, HEARTBEAT_MS);
  }
  beat();
  res.once('close', () => timer?.cancel());
}

/** Writes as fast as the reader takes it, with other requests in between, then ends the response. */
export async function send(
  res: ServerResponse,
  chunks: Iterable<string> | AsyncIterable<string>,
  schedule: Schedule,
): Promise<void> {
  for await (const chunk of chunks) {
    if (isOver(res)) break;
    await (res.write(chunk) ? turn() : drained(res, schedule));
  }
  res.end();
}

/** Resolves when the reader takes more, or is gone. */
function drained(res: ServerResponse, schedule: Schedule): Promise<void> {
  return new Promise((resolve) => {
    const deadline = schedule(() => res.destroy(), MAX_STALL_MS);
    function done(): void {
      deadline.cancel();
      res.off('drain', done).off('close', done);
      resolve();
    }
    res.on('drain', done).on('close', done);
  });
}

/** Whether nothing more can be written. */
function isOver(res: ServerResponse): boolean {
  return res.destroyed || res.writableEnded;
}

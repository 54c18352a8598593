import type { Request, RequestHandler, Response } from 'express';
import type { Schedule, Timer } from '../core/clock';
import { drained, isOver } from './drained';
import { floorsSince } from './moved-floors';
import type { MovedFloor } from './moved-floors';
import type { Store } from './store';

/** The event stream and its open connections. */
export interface GenerationsStream {
  readonly handler: RequestHandler;
  /** Ends every open stream. */
  close(): void;
}

/** A reader that hears nothing for three of them takes the connection for dead. */
const HEARTBEAT_MS = 15_000;

/**
 * Makes `GET /generations/stream` (WHATWG HTML section 9.2): one event per floor that moves. `Last-Event-ID` replays
 * every floor that moved at or after it. A reader that takes nothing for 15 s is dropped; its last id brings it back.
 */
export function generationsStream(store: Store, schedule: Schedule): GenerationsStream {
  const open = new Set<Response>();

  return {
    handler: function streamGenerations(req, res) {
      const from = firstRevision(req) ?? store.state.revision + 1;
      res.writeHead(200, {
        'Content-Type': 'text/event-stream; charset=utf-8',
        'Cache-Control': 'no-store',
        // Proxies of the nginx family hold events back without it.
        'X-Accel-Buffering': 'no',
      });
      if (req.method === 'HEAD') return void res.end();
      // Makes the reader hear at once that the stream stands.
      res.write(':\n\n');
      open.add(res);
      const stopHeartbeat = startHeartbeat(res, schedule);
      res.once('close', () => {
        open.delete(res);
        stopHeartbeat();
      });
      void sendFloors(res, store, from, schedule);
    },
    close() {
      for (const res of open) res.end();
    },
  };
}

/** What does not look like one of our ids asks for everything: repetition is harmless, a gap is not. */
function firstRevision(req: Request): number | undefined {
  const id = req.get('last-event-id');
  if (id === undefined || id === '') return undefined;
  return /^\d{1,16}$/.test(id) ? Number(id) : 0;
}

/** Sends what moves, for as long as the connection is open. A slow reader gets the latest floors, not every step. */
async function sendFloors(res: Response, store: Store, from: number, schedule: Schedule): Promise<void> {
  let next = from;
  let wake = (): void => {};
  const unsubscribe = store.subscribe(() => wake());
  res.once('close', () => wake());
  while (!isOver(res)) {
    // Before the look at the state: a change in between must not be slept through.
    const woken = new Promise<void>((resolve) => (wake = resolve));
    const moved = floorsSince(store.state, next).sort((a, b) => a.movedAt - b.movedAt);
    for (const floor of moved) {
      if (isOver(res)) break;
      next = floor.movedAt + 1;
      if (!res.write(toEvent(floor))) await drained(res, schedule);
    }
    if (moved.length === 0) await woken;
  }
  unsubscribe();
}

function toEvent({ clientId, generation, movedAt }: MovedFloor): string {
  const data = JSON.stringify({ client_id: clientId, generation });
  return `id: ${movedAt}\nevent: generation\ndata: ${data}\n\n`;
}

function startHeartbeat(res: Response, schedule: Schedule): () => void {
  let timer: Timer;
  function beat(): void {
    if (!res.writableNeedDrain && !isOver(res)) res.write(':\n\n');
    timer = schedule(beat, HEARTBEAT_MS);
  }
  timer = schedule(beat, HEARTBEAT_MS);
  return () => timer.cancel();
}

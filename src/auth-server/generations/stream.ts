import type { Request, RequestHandler, Response } from 'express';
import type { Schedule, Timer } from '../../core/clock';
import type { Store } from '../storage/store';
import { drained, floorsSince, isOver } from './floors';
import type { MovedFloor } from './floors';

/** The event stream and its open connections. */
export interface GenerationsStream {
  readonly handler: RequestHandler;
  /** Ends every open stream. */
  close(): void;
}

/** A reader that receives nothing for three of them gives up the connection. */
const HEARTBEAT_MS = 15_000;

/**
 * Makes `GET /generations/stream` (WHATWG HTML section 9.2): one event per floor that changes. `Last-Event-ID` replays
 * every floor that changed at or after it. A reader that takes nothing for 15 s is dropped; it reconnects with its last id.
 */
export function generationsStream(store: Store, schedule: Schedule): GenerationsStream {
  const open = new Set<Response>();

  return {
    async handler(req, res) {
      const from = firstRevision(req) ?? store.state.revision + 1;
      res.writeHead(200, {
        'Content-Type': 'text/event-stream; charset=utf-8',
        'Cache-Control': 'no-store',
        // Proxies of the nginx family buffer events without it.
        'X-Accel-Buffering': 'no',
      });
      if (req.method === 'HEAD') return void res.end();
      // Shows the reader immediately that the stream is open.
      res.write(':\n\n');
      open.add(res);
      const stopHeartbeat = startHeartbeat(res, schedule);
      res.once('close', () => {
        open.delete(res);
        stopHeartbeat();
      });
      await sendFloors(res, store, from, schedule);
    },
    close() {
      for (const res of open) res.end();
    },
  };
}

/** A foreign id asks for everything: repetition is harmless, a gap is not. */
function firstRevision(req: Request): number | undefined {
  const id = req.get('last-event-id');
  if (id === undefined || id === '') return undefined;
  return /^\d{1,16}$/.test(id) ? Number(id) : 0;
}

/** Sends changes for as long as the connection is open. A slow reader gets the latest floors, not every step. */
async function sendFloors(res: Response, store: Store, from: number, schedule: Schedule): Promise<void> {
  let next = from;
  let wake = (): void => {};
  const unsubscribe = store.subscribe(() => wake());
  res.once('close', () => wake());
  while (!isOver(res)) {
    // Before the state is read: a change in between must wake too.
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

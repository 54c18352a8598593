import { setImmediate as turn } from 'node:timers/promises';
import type { Request, RequestHandler, Response } from 'express';
import { systemSchedule } from '../../core/clock';
import type { Schedule, Timer } from '../../core/clock';
import { describe } from '../../core/options';
import { isGeneration } from '../../generation/generation';
import { invalidRequest } from '../errors';
import { movedSince } from '../storage/state';
import type { ClientRow } from '../storage/state';
import type { Store } from '../storage/store';

const LINES = 'application/x-ndjson';
/** Lines per write: about a millisecond of work. */
const SLICE = 1_000;
/** A reader that receives nothing for three of them gives up the connection. */
const HEARTBEAT_MS = 15_000;
/** A reader that takes nothing for this long is dropped. */
const MAX_STALL_MS = 15_000;

/**
 * Makes `GET /generations?since=<ms>`: every floor that changed at or after that time, also of deleted clients, and the
 * time to ask from next. The entity tag, the revision, survives a restart. The response is JSON by default; with
 * `Accept: application/x-ndjson` it is a line `{"now", "count"}` and then one line per floor, for any number of floors.
 */
export function generationsFeed(store: Store, schedule: Schedule = systemSchedule): RequestHandler {
  return async function listGenerations(req, res) {
    const since = readSince(req);
    // Read together: every later change has a revision of `now` or more.
    const { state } = store;
    const now = store.nowMs();
    res.vary('Accept').set({ ETag: `"${state.revision}"`, 'Cache-Control': 'no-cache' });
    if (req.fresh) return void res.status(304).end();
    const floors = await movedSince(state, since);
    if (req.accepts(['application/json', LINES]) !== LINES) {
      return void res.json({ now, floors: floors.map(toEntry) });
    }
    res.set('Content-Type', LINES);
    await send(res, toLines(now, floors), schedule);
  };
}

/** In slices: a million floors must not delay other requests. */
function* toLines(now: number, floors: readonly ClientRow[]): Generator<string, void, undefined> {
  yield `${JSON.stringify({ now, count: floors.length })}\n`;
  for (let at = 0; at < floors.length; at += SLICE) {
    const lines = floors.slice(at, at + SLICE).map((floor) => `${JSON.stringify(toEntry(floor))}\n`);
    yield lines.join('');
  }
}

/**
 * Makes `GET /generations/stream` (WHATWG HTML section 9.2): one event per floor that changes. `Last-Event-ID` replays
 * every floor that changed at or after it. A reader that takes nothing for 15 s is dropped; it reconnects with its last id.
 */
export function generationsStream(store: Store, schedule: Schedule): RequestHandler {
  return async function streamGenerations(req, res) {
    const from = firstRevision(req) ?? store.state.revision + 1;
    res.writeHead(200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store',
      // Proxies of the nginx family buffer events without it.
      'X-Accel-Buffering': 'no',
    });
    if (req.method === 'HEAD') return void res.end();
    startHeartbeat(res, schedule);
    await send(res, changesOf(store, from, res), schedule);
  };
}

/** Changes until the connection or the store is closed. A slow reader gets the latest floors, not every step. */
async function* changesOf(store: Store, from: number, res: Response): AsyncGenerator<string, void, undefined> {
  let next = from;
  let wake = (): void => {};
  const unsubscribe = store.subscribe(() => wake());
  res.once('close', () => wake());
  try {
    while (!isOver(res) && !store.closed) {
      // Before the state is read: a change in between must wake too.
      const woken = new Promise<void>((resolve) => (wake = resolve));
      const moved = await movedSince(store.state, next);
      for (const floor of moved.sort((a, b) => a.movedAt - b.movedAt)) {
        if (store.closed) return;
        next = floor.movedAt + 1;
        yield `id: ${floor.movedAt}\nevent: generation\ndata: ${JSON.stringify(toEntry(floor))}\n\n`;
      }
      if (moved.length === 0) await woken;
    }
  } finally {
    unsubscribe();
  }
}

/** The first comment shows the reader that the stream is open. */
function startHeartbeat(res: Response, schedule: Schedule): void {
  let timer: Timer | undefined;
  function beat(): void {
    if (!res.writableNeedDrain && !isOver(res)) res.write(':\n\n');
    timer = schedule(beat, HEARTBEAT_MS);
  }
  beat();
  res.once('close', () => timer?.cancel());
}

/** Writes as fast as the reader takes it, with other requests in between, then ends the response. */
async function send(
  res: Response,
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
function drained(res: Response, schedule: Schedule): Promise<void> {
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
function isOver(res: Response): boolean {
  return res.destroyed || res.writableEnded;
}

function readSince({ query }: Request): number {
  const { since = '0' } = query;
  const ms = typeof since === 'string' && /^\d{1,16}$/.test(since) ? Number(since) : NaN;
  if (isGeneration(ms)) return ms;
  throw invalidRequest(`since must be a time in ms since the epoch, such as 1800000000000; got ${describe(since)}.`);
}

/** A foreign id asks for everything: repetition is harmless, a gap is not. */
function firstRevision(req: Request): number | undefined {
  const id = req.get('last-event-id');
  if (id === undefined || id === '') return undefined;
  return /^\d{1,16}$/.test(id) ? Number(id) : 0;
}

function toEntry({ clientId, generation }: ClientRow): { client_id: string; generation: number } {
  return { client_id: clientId, generation };
}

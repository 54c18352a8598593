import { setImmediate as turn } from 'node:timers/promises';
import type { Request, RequestHandler, Response } from 'express';
import { systemSchedule } from '../core/clock';
import type { Schedule } from '../core/clock';
import { describe } from '../core/options';
import { isGeneration } from '../generation/generation';
import { drained, isOver } from './drained';
import { collectFloorsSince, floorsSince } from './moved-floors';
import type { MovedFloor } from './moved-floors';
import { invalidRequest } from './refused-request';
import type { Store } from './store';

const LINES = 'application/x-ndjson';

/** Lines per write: about a millisecond of work. */
const SLICE = 1_000;

/**
 * Makes `GET /generations?since=<ms>`: every floor that moved at or after that time, of deleted clients too, and the time
 * from which to ask next. The entity tag outlives a restart, for the revision does. JSON by default; who asks for
 * `application/x-ndjson` gets a line `{"now", "count"}` and then one line per floor, however many they are.
 */
export function generationsFeed(store: Store, schedule: Schedule = systemSchedule): RequestHandler {
  return async function listGenerations(req, res) {
    const since = readSince(req);
    // Together: whatever changes after this look has a revision that is no smaller than the time that is told.
    const { state } = store;
    const now = store.nowMs();
    res.vary('Accept').set({ ETag: `"${state.revision}"`, 'Cache-Control': 'no-cache' });
    if (req.fresh) return void res.status(304).end();
    if (req.accepts(['application/json', LINES]) !== LINES) {
      return void res.json({ now, floors: floorsSince(state, since).map(toEntry) });
    }
    res.set('Content-Type', LINES);
    if (req.method === 'HEAD') return void res.end();
    await sendLines(res, now, await collectFloorsSince(state, since), schedule);
  };
}

/** Slice by slice, as fast as the reader takes them: a million floors must not hold the other requests up. */
async function sendLines(res: Response, now: number, floors: readonly MovedFloor[], schedule: Schedule): Promise<void> {
  res.write(`${JSON.stringify({ now, count: floors.length })}\n`);
  for (let at = 0; at < floors.length && !isOver(res); at += SLICE) {
    const lines = floors.slice(at, at + SLICE).map((floor) => `${JSON.stringify(toEntry(floor))}\n`);
    if (res.write(lines.join(''))) await turn();
    else await drained(res, schedule);
  }
  res.end();
}

function toEntry({ clientId, generation }: MovedFloor): { client_id: string; generation: number } {
  return { client_id: clientId, generation };
}

function readSince({ query }: Request): number {
  const { since = '0' } = query;
  const ms = typeof since === 'string' && /^\d{1,16}$/.test(since) ? Number(since) : NaN;
  if (isGeneration(ms)) return ms;
  throw invalidRequest(`since must be a time in ms since the epoch, such as 1800000000000; got ${describe(since)}.`);
}

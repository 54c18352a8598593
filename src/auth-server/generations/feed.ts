import { setImmediate as turn } from 'node:timers/promises';
import type { Request, RequestHandler, Response } from 'express';
import { systemSchedule } from '../../core/clock';
import type { Schedule } from '../../core/clock';
import { describe } from '../../core/options';
import { isGeneration } from '../../generation/generation';
import { invalidRequest } from '../problem';
import type { Store } from '../storage/store';
import { collectFloorsSince, drained, floorsSince, isOver } from './floors';
import type { MovedFloor } from './floors';

const LINES = 'application/x-ndjson';

/** Lines per write: about a millisecond of work. */
const SLICE = 1_000;

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
    if (req.accepts(['application/json', LINES]) !== LINES) {
      return void res.json({ now, floors: floorsSince(state, since).map(toEntry) });
    }
    res.set('Content-Type', LINES);
    if (req.method === 'HEAD') return void res.end();
    await sendLines(res, now, await collectFloorsSince(state, since), schedule);
  };
}

/** Writes in slices, as fast as the reader takes them: a million floors must not delay other requests. */
async function sendLines(res: Response, now: number, floors: readonly MovedFloor[], schedule: Schedule): Promise<void> {
  if (isOver(res)) return;
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

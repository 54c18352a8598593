import type { Request, RequestHandler } from 'express';
import { describe } from '../core/options';
import { isGeneration } from '../generation/generation';
import { invalidRequest } from './refused-request';
import type { ClientRow, State, Tombstone } from './state';
import type { Store } from './store';

/** A floor with the revision at which it moved. */
export type MovedFloor = Pick<ClientRow | Tombstone, 'clientId' | 'generation' | 'movedAt'>;

/**
 * Makes `GET /generations?since=<ms>`: every floor that moved at or after that time, of deleted clients too, and the time
 * from which to ask next. The entity tag outlives a restart, for the revision does.
 */
export function generationsFeed(store: Store): RequestHandler {
  return function listGenerations(req, res) {
    const since = readSince(req);
    res.set({ ETag: `"${store.state.revision}"`, 'Cache-Control': 'no-cache' });
    if (req.fresh) return void res.status(304).end();
    const floors = floorsSince(store.state, since).map(({ clientId, generation }) => ({
      client_id: clientId,
      generation,
    }));
    res.json({ now: store.nowMs(), floors });
  };
}

/** The floors that moved at or after a revision, in no order. */
export function floorsSince({ clients, tombstones }: State, revision: number): MovedFloor[] {
  return [...clients.values(), ...tombstones.values()].filter(({ movedAt }) => movedAt >= revision);
}

function readSince({ query }: Request): number {
  const { since = '0' } = query;
  const ms = typeof since === 'string' && /^\d{1,16}$/.test(since) ? Number(since) : NaN;
  if (isGeneration(ms)) return ms;
  throw invalidRequest(`since must be a time in ms since the epoch, such as 1800000000000; got ${describe(since)}.`);
}

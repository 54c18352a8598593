import { STATUS_CODES } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Schedule } from '../../core/clock';
import { describe } from '../../core/options';
import { isGeneration } from '../generation';
import { toEntry } from './feed';
import type { Feed, FeedView } from './feed';
import type { MovedFloors } from './floor-log';
import { changesOf, send, startHeartbeat } from './stream';

/** A request handler for Express 4 and 5, or for Node's own server. */
export type FeedHandler = (req: IncomingMessage, res: ServerResponse, next?: (error?: unknown) => void) => void;

const LINES = 'application/x-ndjson';
const JSON_TYPE = 'application/json';
/** Floors per write: about a millisecond of work. */
const SLICE = 1_000;

/**
 * Serves `GET /?since=<ms>`: every floor that moved at or after that time, and the time to ask from next. JSON by default;
 * with `Accept: application/x-ndjson` it is a line `{"now", "count"}` and then one line per floor, for any number of floors.
 *
 * `GET /stream` (WHATWG HTML section 9.2): one event per floor that moves. `Last-Event-ID` replays every floor that moved
 * at or after it. A reader that takes nothing for 15 s is dropped; it reconnects with its last id.
 */
export function feedHandler(feed: Feed, schedule: Schedule): FeedHandler {
  async function sendFloors(req: IncomingMessage, res: ServerResponse, query: string): Promise<void> {
    const since = readSince(query);
    if (typeof since === 'string') return refuse(res, 400, 'invalid_request', since);
    const view = feed.view();
    if (!view) return unavailable(res);
    const etag = `"${view.revision}"`;
    vary(res, 'Accept');
    res.setHeader('ETag', etag).setHeader('Cache-Control', 'no-cache');
    // Rounded up, so that ages that add up along a chain are never too low (RFC 9111 section 5.1).
    if (view.ageMs !== undefined) res.setHeader('Age', Math.ceil(Math.max(0, view.ageMs) / 1000));
    if (isUnchanged(req, etag)) return void res.writeHead(304).end();
    const isLines = prefersLines(req.headers.accept ?? '');
    res.setHeader('Content-Type', isLines ? LINES : `${JSON_TYPE}; charset=utf-8`);
    if (req.method === 'HEAD') return void res.end();
    await send(res, textOf(view, await view.movedSince(since), isLines), schedule);
  }

  async function sendChanges(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const view = feed.view();
    if (!view) return unavailable(res);
    res.writeHead(200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store',
      // Proxies of the nginx family buffer events without it.
      'X-Accel-Buffering': 'no',
    });
    if (req.method === 'HEAD') return void res.end();
    startHeartbeat(res, schedule);
    await send(res, changesOf(feed, lastEventId(req) ?? view.nextMs, res), schedule);
  }

  function unavailable(res: ServerResponse): void {
    res.setHeader('Retry-After', feed.retryAfterSeconds);
    const detail = 'This feed has no recent complete read of the source that it follows.';
    refuse(res, 503, 'generations_unavailable', detail);
  }

  function handle(req: IncomingMessage, res: ServerResponse, path: string, query: string): Promise<void> | void {
    const { via } = feed;
    if (via.length > 0) res.setHeader('Via', via.map((name) => `1.1 ${name}`).join(', '));
    if (req.method !== 'GET' && req.method !== 'HEAD') {
      res.setHeader('Allow', 'GET, HEAD');
      return refuse(res, 405, 'method_not_allowed', `This URL takes GET, HEAD; got ${req.method}.`);
    }
    return path === '' ? sendFloors(req, res, query) : sendChanges(req, res);
  }

  return function generationsFeed(req, res, next) {
    const [path = '', ...query] = (req.url ?? '').split('?');
    const name = path.replace(/\/+$/, '');
    if (name !== '' && name !== '/stream') {
      return next ? next() : refuse(res, 404, 'not_found', 'There is nothing at this URL.');
    }
    Promise.resolve(handle(req, res, name, query.join('?'))).catch((error: unknown) => {
      if (next && !res.headersSent) next(error);
      else res.destroy();
    });
  };
}

/** A problem (RFC 9457). */
function refuse(res: ServerResponse, status: number, code: string, detail: string): void {
  res.writeHead(status, { 'Content-Type': 'application/problem+json', 'Cache-Control': 'no-store' });
  res.end(JSON.stringify({ type: 'about:blank', title: STATUS_CODES[status], status, detail, code }));
}

/** In slices: a million floors must not delay other requests. */
function* textOf(view: FeedView, moved: MovedFloors, isLines: boolean): Generator<string, void, undefined> {
  const times = { now: view.nowMs, ...(view.completeFromMs > 0 && { complete_from: view.completeFromMs }) };
  const [end, separator] = isLines ? ['\n', ''] : [']}', ','];
  let text = isLines
    ? `${JSON.stringify({ ...times, count: moved.count })}\n`
    : `${JSON.stringify(times).slice(0, -1)},"floors":[`;
  let count = 0;
  for (const floor of moved.floors) {
    if (isLines) text += `${toEntry(floor)}\n`;
    else text += `${count === 0 ? '' : separator}${toEntry(floor)}`;
    if (++count % SLICE > 0) continue;
    yield text;
    text = '';
  }
  if (!isLines) text += end;
  if (text !== '') yield text;
}

/** The time, or what is wrong with it. */
function readSince(query: string): number | string {
  const all = new URLSearchParams(query).getAll('since');
  const since = all.length > 1 ? all : (all[0] ?? '0');
  const ms = typeof since === 'string' && /^\d{1,16}$/.test(since) ? Number(since) : NaN;
  if (isGeneration(ms)) return ms;
  return `since must be a time in ms since the epoch, such as 1800000000000; got ${describe(since)}.`;
}

/** A foreign id asks for everything: repetition is harmless, a gap is not. */
function lastEventId({ headers }: IncomingMessage): number | undefined {
  const id = headers['last-event-id'];
  if (id === undefined || id === '') return undefined;
  return typeof id === 'string' && /^\d{1,16}$/.test(id) ? Number(id) : 0;
}

/** RFC 9110 section 13.1.2. `Cache-Control: no-cache` of a request asks caches to validate: a 304 does. */
function isUnchanged({ headers }: IncomingMessage, etag: string): boolean {
  const tags = (headers['if-none-match'] ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes(etag) || tags.includes('*');
}

/** Whether lines are named with a higher weight than JSON, or before it (RFC 9110 section 12.5.1). */
function prefersLines(accept: string): boolean {
  const ranges = accept.split(',').map((range, index) => {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1';
    return { name, index, weight: Number(weight) || 0 };
  });
  const lines = ranges.find(({ name }) => name === LINES);
  if (!lines || lines.weight === 0) return false;
  const json = [JSON_TYPE, 'application/*', '*/*'].flatMap((type) => ranges.find(({ name }) => name === type) ?? [])[0];
  if (!json || json.weight !== lines.weight) return lines.weight > (json?.weight ?? 0);
  return json.name !== JSON_TYPE || lines.index < json.index;
}

function vary(res: ServerResponse, name: string): void {
  const known = res.getHeader('Vary');
  if (known !== '*') res.setHeader('Vary', known === undefined ? name : `${String(known)}, ${name}`);
}

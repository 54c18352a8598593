import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import type { Clock, Schedule } from '../../core/clock';
import type { Change, Mark } from '../log';
import type { ServedLog } from '../memory';

/** Longest position, in characters. */
const MAX_POSITION_LENGTH = 256;
const HEARTBEAT_MS = 1_000;
/** A reader that takes nothing for this long is dropped. */
const MAX_STALL_MS = 15_000;
/** Events per write: about a millisecond of work. */
const SLICE = 1_000;

/**
 * Serves a log. `GET /?after=<position>`: what follows the position, from the oldest change if the log does not have it.
 *
 * `GET /stream` (WHATWG HTML section 9.2): the same as events, which `Last-Event-ID` resumes, and the mark once the reader
 * has caught up and every second from then on. A reader that takes nothing for 15 s is dropped.
 *
 * @returns a handler for Express 4 and 5, or for Node's own server; `close()` ends the open streams
 */
export function logHandler(options: {
  readonly log: ServedLog;
  readonly schedule: Schedule;
  /** Makes a mark of this time, for a log that is itself the truth. Default: the publisher's mark. */
  readonly clock?: Clock;
}): ((req: IncomingMessage, res: ServerResponse, next?: (error?: unknown) => void) => void) & { close(): void } {
  const { log, schedule, clock } = options;
  const epoch = randomUUID();
  const streams = new Set<ServerResponse>();
  let unit = 0;

  function read(after: string | undefined, limit?: number): ReturnType<ServedLog['read']> {
    const page = log.read(after, limit);
    if (!clock || !page.end) return page;
    return { ...page, mark: { epoch, unit: ++unit, completeMs: clock(), keptMs: log.keptMs } };
  }

  function sendPage(res: ServerResponse, query: string): void {
    const [after, ...more] = new URLSearchParams(query).getAll('after');
    if (more.length > 0) return refuse(res, 400, 'invalid_request', 'after must be sent once.');
    const tooLong = `after must have at most ${MAX_POSITION_LENGTH} characters; send the position of a response.`;
    if (after && after.length > MAX_POSITION_LENGTH) return refuse(res, 400, 'invalid_request', tooLong);
    res.setHeader('Content-Type', 'application/json; charset=utf-8').setHeader('Cache-Control', 'no-store');
    res.end(pageText(read(after)));
  }

  async function sendStream(req: IncomingMessage, res: ServerResponse): Promise<void> {
    res.writeHead(200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store',
      // Proxies of the nginx family buffer events without it.
      'X-Accel-Buffering': 'no',
    });
    if (req.method === 'HEAD') return void res.end();
    let wake = (): void => {};
    const unsubscribe = log.subscribe(() => wake());
    streams.add(res);
    res.on('drain', () => wake());
    res.once('close', () => {
      streams.delete(res);
      unsubscribe();
      wake();
    });
    // Anything that is not a position of the log asks for everything: repetition is harmless, a gap is not.
    let position = String(req.headers['last-event-id']);
    while (!res.destroyed && !res.writableEnded) {
      // Before the log is read: a change in between must wake too.
      const woken = new Promise<void>((resolve) => (wake = resolve));
      let events = '';
      let page = read(position, 1);
      for (let count = 0; page.changes[0] && count < SLICE; count++) {
        position = page.position;
        events += `id: ${position}\nevent: change\ndata: ${changeText(page.changes[0])}\n\n`;
        page = read(position, 1);
      }
      const isCaughtUp = page.changes.length === 0;
      if (isCaughtUp) events += page.mark ? `event: mark\ndata: ${markText(page.mark)}\n\n` : ':\n\n';
      if (!res.write(events)) {
        const deadline = schedule(() => res.destroy(), MAX_STALL_MS);
        while (res.writableNeedDrain) await new Promise<void>((resolve) => (wake = resolve));
        deadline.cancel();
      } else if (isCaughtUp) {
        const heartbeat = schedule(() => wake(), HEARTBEAT_MS);
        await woken;
        heartbeat.cancel();
      } else {
        // As fast as the reader takes it, with other requests in between.
        await turn();
      }
    }
  }

  function serveLog(req: IncomingMessage, res: ServerResponse, next?: (error?: unknown) => void): void {
    const [path = '', ...query] = (req.url ?? '').split('?');
    const name = path.replace(/\/+$/, '');
    if (name !== '' && name !== '/stream') {
      return next ? next() : refuse(res, 404, 'not_found', 'There is nothing at this URL.');
    }
    if (req.method !== 'GET' && req.method !== 'HEAD') {
      res.setHeader('Allow', 'GET, HEAD');
      return refuse(res, 405, 'method_not_allowed', `This URL takes GET, HEAD; got ${req.method}.`);
    }
    if (name === '') sendPage(res, query.join('?'));
    else sendStream(req, res).catch(() => res.destroy());
  }

  return Object.assign(serveLog, { close: () => streams.forEach((res) => res.end()) });
}

/** The JSON of a page. */
function pageText({ position, end, mark, changes }: ReturnType<ServedLog['read']>): string {
  const head = `{"position":${JSON.stringify(position)},"end":${end}${mark ? `,"mark":${markText(mark)}` : ''}`;
  return `${head},"changes":[${changes.map(changeText).join(',')}]}`;
}

/** The JSON of a change, in half the time that it takes as an object. */
function changeText([clientId, generation]: Change): string {
  return `{"client_id":${JSON.stringify(clientId)},"generation":${generation}}`;
}

/** The JSON of a mark. */
function markText({ epoch, unit, completeMs, keptMs }: Mark): string {
  return JSON.stringify({ epoch, unit, complete_ms: completeMs, kept_ms: keptMs });
}

/** A problem (RFC 9457). */
function refuse(res: ServerResponse, status: number, code: string, detail: string): void {
  res.writeHead(status, { 'Content-Type': 'application/problem+json', 'Cache-Control': 'no-store' });
  res.end(JSON.stringify({ type: 'about:blank', title: STATUS_CODES[status], status, detail, code }));
}

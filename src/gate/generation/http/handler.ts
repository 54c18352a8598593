import { randomUUID } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Clock, Schedule } from '../../core/clock';
import type { ServedLog } from '../memory';

/** Longest position, in characters. */
const MAX_POSITION_LENGTH = 256;
/** Longest time that a response is held, in ms. */
const MAX_WAIT_MS = 30_000;

/**
 * Serves a log. `GET /?after=<position>`: what follows the position, from the oldest change if the log does not have it. With
 * `wait=<ms>`, a response without changes is held: until one is appended, the mark has moved, or the time is over, 30 s at most.
 *
 * @returns a handler for Express 4 and 5, or for Node's own server; `close()` ends what is held
 */
export function logHandler(options: {
  readonly log: ServedLog;
  readonly schedule: Schedule;
  /** Makes a mark of this time, for a log that is itself the truth. Default: the publisher's mark. */
  readonly clock?: Clock;
}): ((req: IncomingMessage, res: ServerResponse, next?: (error?: unknown) => void) => void) & { close(): void } {
  const { log, schedule, clock } = options;
  const epoch = randomUUID();
  /** Responds to each request that is held. */
  const held = new Set<() => void>();
  let unit = 0;
  let closed = false;

  function send(res: ServerResponse, after: string | undefined): void {
    // Another middleware may have responded while this response was held.
    if (res.headersSent) return;
    const page = log.read(after);
    const mark = clock ? { epoch, unit: ++unit, completeMs: clock(), keptMs: log.keptMs } : page.mark;
    res.setHeader('Content-Type', 'application/json; charset=utf-8').setHeader('Cache-Control', 'no-store');
    res.end(pageText({ ...page, mark }));
  }

  function hold(res: ServerResponse, after: string | undefined, waitMs: number): void {
    const unsubscribe = log.subscribe(respond);
    const timer = schedule(respond, waitMs);
    held.add(respond);
    res.once('close', forget);

    function forget(): void {
      held.delete(respond);
      timer.cancel();
      unsubscribe();
    }
    function respond(): void {
      forget();
      send(res, after);
    }
  }

  function serveLog(req: IncomingMessage, res: ServerResponse, next?: (error?: unknown) => void): void {
    const [path = '', ...rest] = (req.url ?? '').split('?');
    if (next && path !== '' && path !== '/') return next();
    const query = new URLSearchParams(rest.join('?'));
    const problem = problemOfRequest(path, req.method, query);
    if (problem) return refuseRequest(res, ...problem);
    const after = query.get('after') ?? undefined;
    const waitMs = req.method === 'HEAD' ? 0 : Math.min(Number(query.get('wait') ?? 0), MAX_WAIT_MS);
    // A client that asks again at once must not be served while the server closes.
    if (closed && waitMs > 0) return refuseRequest(res, 503, 'unavailable', 'The server is closing.');
    if (waitMs > 0 && log.read(after, 1).changes.length === 0) return hold(res, after, waitMs);
    send(res, after);
  }

  return Object.assign(serveLog, {
    close() {
      closed = true;
      for (const respond of [...held]) respond();
    },
  });
}

type RequestProblem = readonly [status: number, code: string, detail: string];

function problemOfRequest(
  path: string,
  method: string | undefined,
  query: URLSearchParams,
): RequestProblem | undefined {
  const invalid = (detail: string): RequestProblem => [400, 'invalid_request', detail];
  if (path !== '' && path !== '/') return [404, 'not_found', 'There is nothing at this URL.'];
  if (method !== 'GET' && method !== 'HEAD') {
    return [405, 'method_not_allowed', `This URL takes GET, HEAD; got ${method}.`];
  }
  for (const name of ['after', 'wait']) if (query.getAll(name).length > 1) return invalid(`${name} must be sent once.`);
  if ((query.get('after') ?? '').length > MAX_POSITION_LENGTH) {
    return invalid(`after must have at most ${MAX_POSITION_LENGTH} characters; send the position of a response.`);
  }
  return /^\d{1,9}$/.test(query.get('wait') ?? '0')
    ? undefined
    : invalid('wait must be a whole number of milliseconds.');
}

function pageText({ position, end, mark, changes }: ReturnType<ServedLog['read']>): string {
  return JSON.stringify({
    position,
    end,
    mark: mark && { epoch: mark.epoch, unit: mark.unit, complete_ms: mark.completeMs, kept_ms: mark.keptMs },
    changes: changes.map(([clientId, generation]) => ({ client_id: clientId, generation })),
  });
}

/** A problem (RFC 9457). */
function refuseRequest(res: ServerResponse, ...[status, code, detail]: RequestProblem): void {
  if (status === 405) res.setHeader('Allow', 'GET, HEAD');
  res.writeHead(status, { 'Content-Type': 'application/problem+json', 'Cache-Control': 'no-store' });
  res.end(JSON.stringify({ type: 'about:blank', title: STATUS_CODES[status], status, detail, code }));
}

import type { Request, RequestHandler, Response } from 'express';
import './request-id';

/** One request that was answered, or given up by its caller. Holds no query, body, header or token. */
export interface RequestEvent {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly durationMs: number;
  readonly requestId: string | undefined;
  /** Client id of a token that was verified; absent where none was. */
  readonly clientId: string | undefined;
  /** Why the request was refused; absent where it was not. */
  readonly reason: string | undefined;
  /** Whether the caller hung up before the answer was complete. */
  readonly aborted: boolean;
}

/** Makes one event of every request. */
export interface RequestObserver {
  /** Mounted first, behind `requestId()`. */
  readonly handler: RequestHandler;
  /** Says why a request that is under way is being refused. */
  refused(requestId: string | undefined, reason: string | undefined): void;
}

/** A request under way. */
interface Pending {
  reason?: string | undefined;
}

/** Calls `onRequest` once for every request, when its answer is complete. */
export function requestObserver(onRequest: (event: RequestEvent) => void, clock: () => number): RequestObserver {
  // By id, because a decision names the id of its request. Two callers may send the same one: only the reason suffers.
  const underWay = new Map<string, Pending>();

  return {
    handler: function observeRequest(req, res, next) {
      const startedMs = clock();
      const pending: Pending = {};
      const id = req.id ?? '';
      underWay.set(id, pending);
      res.once('close', () => {
        if (underWay.get(id) === pending) underWay.delete(id);
        onRequest(eventOf(req, res, clock() - startedMs, pending.reason));
      });
      next();
    },
    refused(requestId, reason) {
      const pending = underWay.get(requestId ?? '');
      if (pending) pending.reason = reason;
    },
  };
}

function eventOf(req: Request, res: Response, durationMs: number, reason: string | undefined): RequestEvent {
  return {
    method: req.method,
    path: loggablePath(req.originalUrl),
    status: res.statusCode,
    durationMs: Math.round(durationMs * 10) / 10,
    requestId: req.id,
    clientId: req.auth?.clientId,
    reason,
    aborted: !res.writableFinished,
  };
}

/** The path without its query, and without anything that looks like a token: some callers put one there. */
function loggablePath(url: string): string {
  const [path = ''] = url.split('?', 1);
  return path.slice(0, 512).replace(/ey[\w-]{8,}(\.[\w-]*)*/g, '[token]');
}

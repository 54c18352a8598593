import type { Request, RequestHandler, Response } from 'express';
import { loggablePath } from '../index';
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
  /** What operators should know about a refusal, beside its reason. */
  readonly detail: string | undefined;
  /** Whether the caller hung up before the answer was complete. */
  readonly aborted: boolean;
}

/** Makes one event of every request. */
export interface RequestObserver {
  /** Mounted first, behind `requestId()`. */
  readonly handler: RequestHandler;
  /** Says why the request that is under way with this id is being refused. */
  refused(requestId: string | undefined, refusal: Refusal): void;
}

/** Why a request is refused. */
export interface Refusal {
  readonly reason: string;
  readonly detail?: string | undefined;
}

/** A request under way. */
interface Pending {
  refusal?: Refusal;
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
        onRequest(eventOf(req, res, clock() - startedMs, pending.refusal));
      });
      next();
    },
    refused(requestId, refusal) {
      const pending = underWay.get(requestId ?? '');
      if (pending) pending.refusal = refusal;
    },
  };
}

function eventOf(req: Request, res: Response, durationMs: number, refusal: Refusal | undefined): RequestEvent {
  return {
    method: req.method,
    path: loggablePath(req.originalUrl),
    status: res.statusCode,
    durationMs: Math.round(durationMs * 10) / 10,
    requestId: req.id,
    clientId: req.auth?.clientId,
    reason: refusal?.reason,
    detail: refusal?.detail,
    aborted: !res.writableFinished,
  };
}

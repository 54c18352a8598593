import type { IncomingMessage } from 'node:http';
import type { Request, RequestHandler, Response } from 'express';
import { loggablePath } from '../core/logger';
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
  /** Says why a request that is under way is being refused. */
  refused(request: IncomingMessage, refusal: Refusal): void;
}

/** Why a request is refused. */
export interface Refusal {
  readonly reason: string;
  readonly detail?: string | undefined;
}

/** Calls `onRequest` once for every request, when its answer is complete. */
export function requestObserver(onRequest: (event: RequestEvent) => void, clock: () => number): RequestObserver {
  // Not by request id: callers choose those, and two of them may choose the same one.
  const refusals = new WeakMap<IncomingMessage, Refusal>();

  return {
    handler: function observeRequest(req, res, next) {
      const startedMs = clock();
      res.once('close', () => onRequest(eventOf(req, res, clock() - startedMs, refusals.get(req))));
      next();
    },
    refused: (request, refusal) => void refusals.set(request, refusal),
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

import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { destination, pino, stdTimeFunctions } from 'pino';
import type { DestinationStream, Logger } from 'pino';
import type { Decision } from 'tillgate';

/** The log: JSON lines on stderr, because stdout is for results. */
export function createLog(level: string, stream: DestinationStream = destination(2)): Logger {
  const options = {
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    hooks: { streamWrite: escapeNonAscii },
  };
  return pino(options, stream);
}

/** JSON allows characters that terminals take for commands and log viewers for line breaks (U+009B, U+2028, U+202E). */
function escapeNonAscii(json: string): string {
  return json.replace(/[\x7f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

declare global {
  // eslint-disable-next-line @typescript-eslint/no-namespace -- the one way to type a member of Express's request
  namespace Express {
    interface Request {
      /** Set by `requestId()`; goes into the log, `X-Request-Id` and problem bodies. */
      id?: string;
    }
  }
}

/** Accepted ids of callers: they go into logs and problem bodies, so nothing that starts like a token. */
const SANE_ID = /^(?!eyJ)[A-Za-z0-9._-]{1,64}$/;

/** Gives every request and its response an id: the caller's `X-Request-Id` if it is sane, else a new one. */
export function requestId(req: Request, res: Response, next: NextFunction): void {
  const given = req.get('x-request-id');
  req.id = given !== undefined && SANE_ID.test(given) ? given : randomUUID();
  res.set('X-Request-Id', req.id);
  next();
}

/** Why requests are refused. By request and not by its id: two callers may choose the same. */
const refusals = new WeakMap<IncomingMessage, { readonly reason: string; readonly detail?: string | undefined }>();

/** Keeps for the log why a request is refused. */
export function noteRefusal(req: IncomingMessage, reason: string, detail?: string): void {
  refusals.set(req, { reason, detail });
}

/** The option `onDecision` of the gate: its refusals are logged with their request. */
export function noteDecision({ reason, error }: Decision, req: IncomingMessage): void {
  if (reason) noteRefusal(req, reason, error?.privateDetail);
}

/** Logs each request when its response is complete: without query, body, headers and token. */
export function logRequests(log: Logger): RequestHandler {
  return function logRequest(req, res, next) {
    const startedMs = performance.now();
    res.once('close', function logClosed() {
      const fields = {
        method: req.method,
        path: loggablePath(req.originalUrl),
        status: res.statusCode,
        duration_ms: Math.round((performance.now() - startedMs) * 10) / 10,
        request_id: req.id,
        issuer: req.auth?.issuer,
        client_id: req.auth?.clientId,
        ...refusals.get(req),
        ...(!res.writableFinished && { aborted: true }),
      };
      if (res.statusCode >= 500) log.error(fields, 'request failed');
      else log.info(fields, 'request');
    });
    next();
  };
}

const MAX_SEGMENT = 64;
const MAX_PATH = 512;

/**
 * The path of a request without scheme, host, query and fragment, and without anything that can be a token: some callers put
 * one there by mistake.
 */
export function loggablePath(target: string): string {
  const [path = ''] = target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').split(/[?#]/, 1);
  // No id of ours is so long, every token is: percent-encoded, opaque, or only a part of one.
  const short = path.replace(/[^/]+/g, (segment) => (segment.length > MAX_SEGMENT ? `[${segment.length}]` : segment));
  return short.replace(/eyJ[\w-]{8,}(\.[\w-]*)*/g, '[token]').slice(0, MAX_PATH);
}

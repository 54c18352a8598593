import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Request, RequestHandler, Response } from 'express';
import type * as pinoPackage from 'pino';
import type { DestinationStream } from 'pino';
import { escapeNonAscii, loggablePath, traceIds } from 'tillgate/internal';
import type { Decision, Logger } from 'tillgate';
import type { UnreadableRequest } from './serve';

/** Options of {@link createLog}. */
export interface LogOptions {
  /** Least severe level that is written. Default `info`. */
  readonly level?: string;
  /** Default: stderr; stdout is for results. */
  readonly destination?: DestinationStream;
}

/** The scaffold's log: JSON lines by pino. */
export function createLog({ level = 'info', destination }: LogOptions = {}): Logger {
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- what else is here is used without pino too
  const { pino } = require('pino') as typeof pinoPackage;
  const formatters = { level: (label: string) => ({ level: label }) };
  const hooks = { streamWrite: escapeNonAscii };
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters, hooks };
  return pino(options, destination ?? pino.destination(2));
}

/** Logs one request: server errors as errors, all others as information. */
export function logRequest(logger: Logger, event: RequestEvent): void {
  const fields = {
    method: event.method,
    path: event.path,
    status: event.status,
    duration_ms: event.durationMs,
    request_id: event.requestId,
    issuer: event.issuer,
    client_id: event.clientId,
    reason: event.reason,
    detail: event.detail,
    ...event.trace,
    ...(event.aborted && { aborted: true }),
  };
  if (event.status >= 500) logger.error(fields, 'request failed');
  else logger.info(fields, 'request');
}

/** Logs one request that could not be parsed: its caller and path are unknown. */
export function logUnreadable(logger: Logger, { status, code }: UnreadableRequest): void {
  logger.info({ status, reason: 'unreadable', detail: code }, 'request');
}

/** The log without its information: a gate reports refusals there, which are logged with their request. */
export function warningsOf(logger: Logger): Logger {
  return {
    info() {},
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
  };
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
export function requestId(generate: () => string = randomUUID): RequestHandler {
  return function requestId(req, res, next) {
    const given = req.get('x-request-id');
    req.id = given !== undefined && SANE_ID.test(given) ? given : generate();
    res.setHeader('X-Request-Id', req.id);
    next();
  };
}

/** One completed or aborted request, without query, body, headers and token. */
export interface RequestEvent {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly durationMs: number;
  readonly requestId: string | undefined;
  /** Issuer of the verified token: two issuers may have a client of the same id. */
  readonly issuer: string | undefined;
  /** Client id of the verified token. */
  readonly clientId: string | undefined;
  /** Why the request was refused. */
  readonly reason: string | undefined;
  /** Details of a refusal, for operators. */
  readonly detail: string | undefined;
  /** Ids of the trace of the request, where OpenTelemetry has one. */
  readonly trace?: { readonly trace_id: string; readonly span_id: string };
  /** Whether the caller closed the connection before the response was complete. */
  readonly aborted: boolean;
}

/** Reports every request as one event. */
export interface RequestObserver {
  /** Mounted first, right after `requestId()`. */
  readonly handler: RequestHandler;
  /** Records why a request is refused. */
  refused(request: IncomingMessage, refusal: Refusal): void;
  /** Records what the gate decided. */
  decided(decision: Decision, request: IncomingMessage): void;
}

/** Why a request is refused. */
interface Refusal {
  readonly reason: string;
  readonly detail?: string | undefined;
}

/** Calls `onRequest` once for every request, when its response is complete. */
export function requestObserver(onRequest: (event: RequestEvent) => void, clock: () => number): RequestObserver {
  // Not by request id: two callers may choose the same.
  const refusals = new WeakMap<IncomingMessage, Refusal>();

  return {
    handler: function observeRequest(req, res, next) {
      const startedMs = clock();
      const trace = traceIds();
      res.once('close', () =>
        onRequest({ ...eventOf(req, res, clock() - startedMs, refusals.get(req)), ...(trace && { trace }) }),
      );
      next();
    },
    refused: (request, refusal) => void refusals.set(request, refusal),
    decided(decision, request) {
      const { reason, error } = decision;
      if (reason) refusals.set(request, { reason, detail: error?.privateDetail });
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
    issuer: req.auth?.issuer,
    clientId: req.auth?.clientId,
    reason: refusal?.reason,
    detail: refusal?.detail,
    aborted: !res.writableFinished,
  };
}

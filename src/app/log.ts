import { pino } from 'pino';
import type { DestinationStream } from 'pino';
import { escapeNonAscii } from '../core/logger';
import type { Logger } from '../index';
import type { RequestEvent } from './request-observer';
import type { UnreadableRequest } from './unreadable-requests';

/** Options of {@link createLog}. */
export interface LogOptions {
  /** Least severe level that is written. Default `info`. */
  readonly level?: string;
  /** Default: stderr; stdout is for results. */
  readonly destination?: DestinationStream;
}

/** The scaffold's log: JSON lines by pino. */
export function createLog({ level = 'info', destination = pino.destination(2) }: LogOptions = {}): Logger {
  const formatters = { level: (label: string) => ({ level: label }) };
  const hooks = { streamWrite: escapeNonAscii };
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters, hooks }, destination);
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

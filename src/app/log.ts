import { pino } from 'pino';
import type { DestinationStream } from 'pino';
import type { Logger } from '../index';
import type { RequestEvent } from './request-observer';
import type { UnreadableRequest } from './unreadable-requests';

/** Options of {@link createLog}. */
export interface LogOptions {
  /** Least severe level that is written. Default `info`. */
  readonly level?: string;
  /** Where the lines go. Default: stderr, so that stdout stays for results. */
  readonly destination?: DestinationStream;
}

/** The scaffold's log: JSON lines by pino. */
export function createLog({ level = 'info', destination = pino.destination(2) }: LogOptions = {}): Logger {
  const formatters = { level: (label: string) => ({ level: label }) };
  const hooks = { streamWrite: inAscii };
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters, hooks }, destination);
}

/**
 * The same JSON with everything beyond printable ASCII escaped: a client id may hold what a terminal takes for a
 * command or a viewer for a line break (U+009B, U+2028, U+202E), and JSON lets it stand.
 */
function inAscii(line: string): string {
  return line.replace(/[\x7f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** One line for one request. Server errors are errors, everything a caller did is information. */
export function logRequest(logger: Logger, event: RequestEvent): void {
  const fields = {
    method: event.method,
    path: event.path,
    status: event.status,
    duration_ms: event.durationMs,
    request_id: event.requestId,
    client_id: event.clientId,
    reason: event.reason,
    detail: event.detail,
    ...(event.aborted && { aborted: true }),
  };
  if (event.status >= 500) logger.error(fields, 'request failed');
  else logger.info(fields, 'request');
}

/** One line for one request that could not be read: whose it was and what it asked for is not known. */
export function logUnreadable(logger: Logger, { status, code }: UnreadableRequest): void {
  logger.info({ status, reason: 'unreadable', detail: code }, 'request');
}

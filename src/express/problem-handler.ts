import { STATUS_CODES } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { AuthError } from '../core/auth-error';
import { serializeChallenge } from '../core/problem';
import { DEPENDENCIES } from '../core/dependencies';
import type { Logger } from '../core/logger';
import { readOptions } from '../core/options';
import { PROBLEM_TYPES } from '../gate/read-options';
import { requestIdOf, routeOf } from './request';
import { sendInternalError, sendProblem, sendRefusal } from './respond';
import { ownValue } from '../core/objects';

/**
 * Makes the last error handler of an app: every error becomes a problem body (RFC 9457). An `AuthError` gets the
 * response of its reason; an error with a 4xx `status`, as body parsers throw it, that status, 401 with a challenge
 * (RFC 9110 section 15.5.2). Any other error becomes a bare 500; details go to the log only.
 *
 * @throws TypeError when an option is wrong
 *
 * @example
 * ```ts
 * import express from 'express';
 * import { problemHandler } from 'tillgate';
 *
 * const app = express();
 * app.use(problemHandler());
 * ```
 */
export function problemHandler(
  options: {
    /** Where unexpected errors go, with their stack. Default: the console. */
    readonly logger?: Logger | undefined;
    /** Base URL of the pages about problems, as in `authenticate()`. Default: as the gate before has it, else none. */
    readonly problemTypes?: string | undefined;
  } = {},
): (error: unknown, req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void {
  const table = { logger: DEPENDENCIES.logger, problemTypes: PROBLEM_TYPES };
  const { logger, problemTypes } = readOptions('problemHandler', options, table);

  // Express tells an error handler by its four parameters.
  return function handleProblem(error, req, res, _next) {
    if (error instanceof AuthError) return sendRefusal(req, res, error, problemTypes);
    const status = statusOf(error);
    if (status !== undefined) {
      const code = codeOf(status);
      return sendProblem(req, res, {
        status,
        type: problemTypes && problemTypes + code,
        code,
        detail: PUBLIC_DETAILS[status] ?? 'The request was refused.',
        ...(status === 401 && { headers: challengeOf(error, res) }),
      });
    }
    const stack = error instanceof Error ? error.stack : String(error);
    logger.error({ route: routeOf(req), requestId: requestIdOf(req), error: stack }, 'unexpected error');
    sendInternalError(req, res, problemTypes);
  };
}

/** In place of the messages of body parsers and routers, which can quote the request. */
const PUBLIC_DETAILS: Readonly<Record<number, string>> = {
  400: 'The request could not be read: check its syntax, for example the JSON of its body and the encoding of its path.',
  404: 'No resource has this URL.',
  405: 'This resource does not support the method.',
  413: 'The body is too large.',
  415: 'The media type or encoding of the body is not supported.',
};

const CODES: Readonly<Record<number, string>> = { 400: 'invalid_request', 413: 'payload_too_large' };

function codeOf(status: number): string {
  return CODES[status] ?? (STATUS_CODES[status] ?? 'error').toLowerCase().replace(/[^a-z]/g, '_');
}

const PLAIN_CHALLENGE = serializeChallenge('Bearer', [['realm', 'api']]);

/** A 401 must say how to authenticate (RFC 9110 section 15.5.2): the error's own challenge, else a plain one. */
function challengeOf(error: unknown, res: ServerResponse): Readonly<Record<string, string>> {
  if (res.hasHeader('WWW-Authenticate')) return {};
  const headers = (ownValue(error, 'headers') as object | undefined) ?? {};
  const own: unknown = Object.entries(headers).find(([name]) => name.toLowerCase() === 'www-authenticate')?.[1];
  const isSafe = typeof own === 'string' && /^[\x20-\x7e]+$/.test(own);
  return { 'WWW-Authenticate': isSafe ? own : PLAIN_CHALLENGE };
}

/** The `status` of an error where it is a 4xx; any 5xx counts as an unexpected error. */
function statusOf(error: unknown): number | undefined {
  const status: unknown = (error as { status?: unknown } | null | undefined)?.status;
  return typeof status === 'number' && Number.isInteger(status) && status >= 400 && status < 500 ? status : undefined;
}

import type { ErrorRequestHandler, RequestHandler, Response } from 'express';
import { problemHandler, sendProblem } from '../index';
import type { Logger } from '../index';

/** A refused request: RFC 6749 section 5.2 at the OAuth endpoints, a problem (RFC 9457) everywhere else. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  readonly status: number;
  /** `error` of RFC 6749, or `code` of the problem, such as `client_exists`. */
  readonly code: string;
  readonly headers: Readonly<Record<string, string>>;

  /** `message` is for the caller; at the OAuth endpoints printable ASCII without quotes and backslashes. */
  constructor(status: number, code: string, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

/** Refuses what was sent: 400 `invalid_request`, which RFC 6749 and the problems have in common. */
export function invalidRequest(message: string): RequestError {
  return new RequestError(400, 'invalid_request', message);
}

/** Refuses every method but those listed: 405 with `Allow` (RFC 9110 section 15.5.6). */
export function allowOnly(methods: string): RequestHandler {
  return function refuseMethod({ method }) {
    const message = `This URL takes ${methods}; got ${method}.`;
    throw new RequestError(405, 'method_not_allowed', message, { Allow: methods });
  };
}

/** Why a response refuses its request, as the log may show it: `detail` has no text of the caller. */
export const refusals = new WeakMap<Response, { readonly code: string; readonly detail?: string }>();

/** Responds to errors of the OAuth endpoints with the body of RFC 6749 section 5.2. */
export const sendOAuthError: ErrorRequestHandler = function sendOAuthError(error, _req, res, next) {
  const refusal = toRequestError(error);
  if (!refusal || res.headersSent) return next(error);
  refusals.set(res, { code: refusal.code, detail: refusal.message });
  res.status(refusal.status).set(refusal.headers);
  res.json({ error: refusal.code, error_description: refusal.message });
};

/** Includes the 4xx errors of body parsers; `undefined` when the client is not at fault. */
function toRequestError(error: unknown): RequestError | undefined {
  if (error instanceof RequestError) return error;
  const status = (error as { status?: unknown } | null)?.status;
  if (status === 413) return new RequestError(413, 'invalid_request', 'The request body must not exceed 16 KiB.');
  if (typeof status !== 'number' || status < 400 || status >= 500) return undefined;
  return invalidRequest('The request body could not be read: check its length and encoding.');
}

/** Makes the last error handler: every error becomes a problem body; unexpected ones expose no detail. */
export function sendProblems(logger: Logger): ErrorRequestHandler {
  const handleOther = problemHandler({ logger });
  return function handleError(error, req, res, next) {
    // Another middleware has responded in the meantime, a time limit for example.
    if (res.writableEnded) return;
    if (!(error instanceof RequestError)) return handleOther(error, req, res, next);
    const { status, code, message, headers } = error;
    refusals.set(res, { code });
    sendProblem(req, res, { status, code, detail: message, headers });
  };
}

import { STATUS_CODES } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AuthError } from '../core/auth-error';
import { requestIdOf } from './http';
import type { GateRequest } from './http';

/** A problem to answer with (RFC 9457). */
export interface ProblemAnswer {
  readonly status: number;
  /** Machine-readable name of the problem, stable across versions. */
  readonly code: string;
  /** Default: the standard phrase of the status. */
  readonly title?: string;
  /** For the caller: what was got, what is expected, what to do. */
  readonly detail?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Further members of the body (RFC 9457 section 3.2). */
  readonly members?: Readonly<Record<string, unknown>>;
}

/**
 * Answers with a problem body (RFC 9457): `application/problem+json`, not to be stored.
 *
 * @example
 * ```ts
 * import { sendProblem } from 'tillgate';
 * import type { RequestHandler } from 'express';
 *
 * export const notFound: RequestHandler = (req, res) =>
 *   sendProblem(req, res, { status: 404, code: 'not_found', detail: 'There is no such order.' });
 * ```
 */
export function sendProblem(req: GateRequest, res: ServerResponse, problem: ProblemAnswer): void {
  const { status, code, title = STATUS_CODES[status] ?? 'Error', detail, headers = {}, members = {} } = problem;
  const requestId = requestIdOf(req);
  write(res, status, headers, {
    type: `urn:tillgate:problem:${code}`,
    title,
    status,
    ...(detail !== undefined && { detail }),
    code,
    ...members,
    ...(requestId !== undefined && { request_id: requestId }),
  });
}

/** Answers with a refusal: status, challenge and body from the reason's row. */
export function sendRefusal(req: GateRequest, res: ServerResponse, error: AuthError): void {
  write(res, error.status, error.headers, error.problem(requestIdOf(req)));
}

/** Answers 500 and says nothing about the cause: that stands in the log. */
export function sendInternalError(req: GateRequest, res: ServerResponse): void {
  sendProblem(req, res, { status: 500, code: 'internal_error', detail: 'The request could not be processed.' });
}

function write(res: ServerResponse, status: number, headers: Readonly<Record<string, string>>, body: object): void {
  if (res.headersSent) {
    // Too late for an answer of ours, and a half one must not look complete.
    res.destroy();
    return;
  }
  const bytes = Buffer.from(JSON.stringify(body));
  res.statusCode = status;
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  res.setHeader('Content-Type', 'application/problem+json; charset=utf-8');
  res.setHeader('Content-Length', bytes.length);
  res.setHeader('Cache-Control', 'no-store');
  res.end(bytes);
}

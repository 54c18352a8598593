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
  const body = {
    type: `urn:tillgate:problem:${code}`,
    title,
    status,
    ...(detail !== undefined && { detail }),
    code,
    ...members,
    ...(requestId !== undefined && { request_id: requestId }),
  };
  writeProblem(res, status, headers, JSON.stringify(body));
}

/** Answers with a refusal: status, challenge and body from the reason's row. */
export function sendRefusal(req: GateRequest, res: ServerResponse, error: AuthError): void {
  writeProblem(res, error.status, error.headers, JSON.stringify(error.problem(requestIdOf(req))));
}

/** Answers 500 and says nothing about the cause: that stands in the log. */
export function sendInternalError(req: GateRequest, res: ServerResponse): void {
  sendProblem(req, res, { status: 500, code: 'internal_error', detail: 'The request could not be processed.' });
}

/** Answers with a problem that is written out already; `length` is that of `text` in bytes. */
export function writeProblem(
  res: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  text: string,
  length = Buffer.byteLength(text),
): void {
  if (res.headersSent) {
    // Too late for an answer of ours, and a half one must not look complete.
    res.destroy();
    return;
  }
  res.statusCode = status;
  for (const name in headers) res.setHeader(name, headers[name] as string);
  res.setHeader('Content-Type', 'application/problem+json; charset=utf-8');
  res.setHeader('Content-Length', length);
  res.setHeader('Cache-Control', 'no-store');
  res.end(text);
}

import type { ErrorRequestHandler, RequestHandler } from 'express';
import { problemHandler, sendProblem } from '../index';
import type { Logger, ProblemResponse } from '../index';
import { StorageError } from './storage/store';

/** A request that is refused with a problem body (RFC 9457). */
export class RefusedRequest extends Error {
  override readonly name = 'RefusedRequest';
  /** Machine-readable name of the problem, such as `client_exists`. */
  readonly code: string;
  readonly status: number;
  readonly problem: ProblemResponse;

  constructor(problem: ProblemResponse) {
    super(problem.detail ?? problem.code);
    this.problem = problem;
    this.code = problem.code;
    this.status = problem.status;
  }
}

/** Refuses what was sent: 400, with what was got, what is expected, and what to do in `detail`. */
export function invalidRequest(detail: string): RefusedRequest {
  return new RefusedRequest({ status: 400, code: 'invalid_request', detail });
}

/** Refuses every method but those listed: 405 with `Allow` (RFC 9110 section 15.5.6). */
export function allowOnly(methods: string): RequestHandler {
  return function refuseMethod(req) {
    throw new RefusedRequest({
      status: 405,
      code: 'method_not_allowed',
      detail: `This URL takes ${methods}; got ${req.method}.`,
      headers: { Allow: methods },
    });
  };
}

/** Makes the last error handler: every error becomes a problem body; unexpected ones expose no detail. */
export function refusalHandler(logger: Logger): ErrorRequestHandler {
  const handleOther = problemHandler({ logger });
  return function handleRefusal(error, req, res, next) {
    // Another middleware has responded in the meantime, a time limit for example.
    if (res.writableEnded) return;
    if (error instanceof RefusedRequest) return sendProblem(req, res, error.problem);
    if (error instanceof StorageError) return sendProblem(req, res, STORAGE_FAILED);
    return handleOther(error, req, res, next);
  };
}

/** The cause is in the log only: it names paths of this machine. */
const STORAGE_FAILED: ProblemResponse = {
  status: 503,
  code: 'storage_unavailable',
  detail:
    'The change could not be written to disk and has not taken place: try again once the disk of the token server has room.',
  headers: { 'Retry-After': '5' },
};

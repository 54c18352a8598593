import type { IncomingMessage, ServerResponse } from 'node:http';
import { problemHandler, sendProblem } from '../index';
import type { Logger, ProblemAnswer } from '../index';
import { StorageError } from './store';

/** A request that is refused with a problem body (RFC 9457). */
export class RefusedRequest extends Error {
  override readonly name = 'RefusedRequest';
  /** Machine-readable name of the problem, such as `client_exists`. */
  readonly code: string;
  readonly status: number;
  readonly answer: ProblemAnswer;

  constructor(answer: ProblemAnswer) {
    super(answer.detail ?? answer.code);
    this.answer = answer;
    this.code = answer.code;
    this.status = answer.status;
  }
}

/** Refuses what was sent: 400, with what was got, what is expected, and what to do in `detail`. */
export function invalidRequest(detail: string): RefusedRequest {
  return new RefusedRequest({ status: 400, code: 'invalid_request', detail });
}

/** An error handler that needs nothing of Express. */
export type RefusalHandler = (
  error: unknown,
  req: IncomingMessage,
  res: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/** Makes the last error handler: every error becomes a problem body, and what is unexpected says nothing of itself. */
export function refusalHandler(logger: Logger): RefusalHandler {
  const handleOther = problemHandler({ logger });
  // Express tells an error handler by its four parameters.
  return function answerRefusal(error, req, res, next) {
    if (error instanceof RefusedRequest) return sendProblem(req, res, error.answer);
    if (error instanceof StorageError) return sendProblem(req, res, STORAGE_FAILED);
    return handleOther(error, req, res, next);
  };
}

/** The cause is in the log: paths of this machine are nobody's business. */
const STORAGE_FAILED: ProblemAnswer = {
  status: 503,
  code: 'storage_unavailable',
  detail:
    'The change could not be written to disk and has not taken place: try again once the disk of the token server has room.',
  headers: { 'Retry-After': '5' },
};

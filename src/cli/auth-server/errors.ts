import type { RequestHandler } from 'express';

type HeaderFields = Readonly<Record<string, string>>;

/** A refused request: RFC 6749 section 5.2 at the OAuth endpoints, a problem (RFC 9457) everywhere else. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  readonly status: number;
  /** `error` of RFC 6749, or `code` of the problem, such as `client_exists`. */
  readonly code: string;
  readonly headers: HeaderFields;
  /** For the log only, in place of the message. */
  readonly privateDetail: string | undefined;

  /** `message` is for the caller; at the OAuth endpoints printable ASCII without quotes and backslashes. */
  constructor(status: number, code: string, message: string, headers: HeaderFields = {}, privateDetail?: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
    this.privateDetail = privateDetail;
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

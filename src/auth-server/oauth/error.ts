import type { ErrorRequestHandler } from 'express';

/** Error codes of the token endpoint (RFC 6749 section 5.2). */
export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_scope'
  | 'unsupported_grant_type'
  /** Not in RFC 6749: for 429, which none of its codes describes. */
  | 'temporarily_unavailable';

/** A refused OAuth request (RFC 6749 section 5.2). */
export class OAuthError extends Error {
  override readonly name = 'OAuthError';
  readonly error: OAuthErrorCode;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  /** `description` goes to the client: printable ASCII without quotes and backslashes (RFC 6749 section 5.2). */
  constructor(
    error: OAuthErrorCode,
    description: string,
    status = 400,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(description);
    this.error = error;
    this.status = status;
    this.headers = headers;
  }
}

/** The last step of an OAuth endpoint: responds to client errors with the body of RFC 6749 section 5.2. */
export const sendOAuthError: ErrorRequestHandler = function sendOAuthError(error, _req, res, next) {
  const refusal = toOAuthError(error);
  if (!refusal || res.headersSent) return next(error);
  res.status(refusal.status).set(refusal.headers);
  res.json({ error: refusal.error, error_description: refusal.message });
};

/** An OAuthError, also for the 4xx errors of body parsers; `undefined` when the client is not at fault. */
function toOAuthError(error: unknown): OAuthError | undefined {
  if (error instanceof OAuthError) return error;
  const status = (error as { status?: unknown } | null)?.status;
  if (status === 413) return new OAuthError('invalid_request', 'The request body must not exceed 16 KiB.', 413);
  if (typeof status !== 'number' || status < 400 || status >= 500) return undefined;
  return new OAuthError('invalid_request', 'The request body could not be read: check its length and encoding.');
}

/** Error codes of the token endpoint (RFC 6749 section 5.2). */
export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_scope'
  | 'unsupported_grant_type'
  /** Not of RFC 6749: for 429, where none of its codes fits. */
  | 'temporarily_unavailable';

/** A token request that is refused (RFC 6749 section 5.2). */
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

/** An error as RFC 6749 section 5.2 has it, one of a body parser too; `undefined` for what is no client's fault. */
export function toOAuthError(error: unknown): OAuthError | undefined {
  if (error instanceof OAuthError) return error;
  const status = (error as { status?: unknown } | null)?.status;
  if (status === 413) return new OAuthError('invalid_request', 'The request body must not exceed 16 KiB.', 413);
  if (typeof status !== 'number' || status < 400 || status >= 500) return undefined;
  return new OAuthError('invalid_request', 'The request body could not be read: check its length and encoding.');
}

/** A source that cannot be read or watched. The message is our own: it holds no credentials and nothing of an answer. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
}

/**
 * Names a failure for operators. Of foreign errors only name and code: what a store's client writes into a message may
 * hold a connection string.
 */
export function describeFailure(error: unknown): string {
  if (error instanceof SourceError) return error.message;
  if (!(error instanceof Error)) return `a thrown ${typeof error}`;
  const code = codeOf(error) ?? codeOf(error.cause);
  return code === undefined ? error.name : `${error.name} (${code})`;
}

/** The `code` of a Node error, such as ECONNREFUSED. */
function codeOf(error: unknown): string | undefined {
  const code: unknown = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[A-Z0-9_]{1,40}$/.test(code) ? code : undefined;
}

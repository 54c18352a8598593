/** A log that cannot be read or appended to. The message contains no credentials and nothing of a response. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
}

/** The error for a source that did not respond within a time limit. */
export function noResponse(limitMs: number): SourceError {
  return new SourceError(`no response within ${limitMs} ms`);
}

/**
 * Describes a failure for operators. Of other libraries' errors only name and code: their message may contain a
 * connection string.
 */
export function describeFailure(error: unknown): string {
  if (error instanceof SourceError) return error.message;
  // Not `instanceof Error`: inside Jest, Node's own errors come from another realm.
  const name = wordIn(error, 'name') ?? `a thrown ${typeof error}`;
  const code = wordIn(error, 'code') ?? wordIn(memberOf(error, 'cause'), 'code');
  return code === undefined ? name : `${name} (${code})`;
}

function wordIn(value: unknown, key: string): string | undefined {
  const word = memberOf(value, key);
  return typeof word === 'string' && /^[A-Za-z0-9_]{1,60}$/.test(word) ? word : undefined;
}

function memberOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined;
}

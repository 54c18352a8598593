/** A source that cannot be read or watched. The message is our own: it holds no credentials and nothing of a response. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
}

/** The error for a source that did not respond within a time limit. */
export function noResponse(limitMs: number): SourceError {
  return new SourceError(`no response within ${limitMs} ms`);
}

/**
 * Names a failure for operators. Of foreign errors only name and code: what a store's client writes into a message may
 * hold a connection string.
 */
export function describeFailure(error: unknown): string {
  if (error instanceof SourceError) return error.message;
  // Not `instanceof Error`: inside Jest, what Node itself throws is of another realm.
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

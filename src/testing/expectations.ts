import { deepStrictEqual, strictEqual } from 'node:assert';

/** The part of an answer that is looked at; what supertest and `fetch` wrappers answer fits. */
export interface AnswerLike {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

/**
 * Expects a challenge with exactly these parameters (RFC 6750 section 3); `realm` and `resource_metadata` are
 * compared only when named.
 *
 * @throws AssertionError (node:assert), which every test framework reports with its difference.
 */
export function expectChallenge(answer: AnswerLike, expected: Readonly<Record<string, string | undefined>>): void {
  const header = answer.headers['www-authenticate'];
  const got = typeof header === 'string' ? parseChallenge(header) : undefined;
  for (const free of ['realm', 'resource_metadata', 'error_description']) {
    if (got && !(free in expected)) delete got[free];
  }
  deepStrictEqual(got, expected);
}

/**
 * Expects a problem body (RFC 9457): its media type, its status, its `code`, and that body and status agree.
 *
 * @throws AssertionError (node:assert)
 */
export function expectProblem(answer: AnswerLike, expected: { readonly status: number; readonly code: string }): void {
  const { status, code } = (answer.body ?? {}) as { status?: unknown; code?: unknown };
  strictEqual(answer.status, expected.status);
  strictEqual(String(answer.headers['content-type']).split(';')[0], 'application/problem+json');
  deepStrictEqual({ status, code }, { status: expected.status, code: expected.code });
}

function parseChallenge(header: string): Record<string, string> {
  strictEqual(header.split(' ', 1)[0], 'Bearer');
  const parameters = header.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g);
  return Object.fromEntries([...parameters].map(([, name = '', value = '']) => [name, value.replace(/\\(.)/g, '$1')]));
}

import { deepStrictEqual } from 'node:assert';
import { describe } from '../core/options';
import { bearerChallenge } from './bearer-challenge';

/** The part of an answer that is looked at; what supertest and `fetch` answer fits. */
export interface AnswerLike {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>> | { get(name: string): string | null };
  /** The parsed body. */
  readonly body?: unknown;
}

/** Parameters of a challenge, by name; `realm`, `resource_metadata` and `error_description` are compared only when named. */
export type ExpectedChallenge = Readonly<Record<string, unknown>>;

/** What a problem body says; members beside these two are compared when named. */
export interface ExpectedProblem {
  readonly status: number;
  readonly code: unknown;
  readonly [member: string]: unknown;
}

/** What was found beside what was expected, in one shape. */
export interface Comparison {
  readonly got: unknown;
  readonly expected: unknown;
}

const COMPARED_WHEN_NAMED = ['realm', 'resource_metadata', 'error_description'];
const PROBLEM = 'application/problem+json';

/**
 * Expects a challenge with exactly these parameters (RFC 6750 section 3); `realm`, `resource_metadata` and
 * `error_description` are compared only when named.
 *
 * @throws AssertionError (node:assert), which every test framework reports with its difference.
 * @example
 * ```ts
 * import { expectChallenge } from 'tillgate/testing';
 *
 * export async function asksForAScope(token: string) {
 *   const answer = await fetch('http://127.0.0.1:3000/v1/orders', { headers: { authorization: `Bearer ${token}` } });
 *   expectChallenge(answer, { error: 'insufficient_scope', scope: 'orders:read' });
 * }
 * ```
 */
export function expectChallenge(answer: AnswerLike, expected: Readonly<Record<string, string | undefined>>): void {
  const compared = compareChallenge(answer, expected);
  deepStrictEqual(compared.got, compared.expected);
}

/**
 * Expects a problem body (RFC 9457): its media type, its status, its `code`, and that body and status agree. Other
 * members, such as `required_scopes`, are compared when named.
 *
 * @throws AssertionError (node:assert)
 * @throws TypeError when the body has not been read
 * @example
 * ```ts
 * import { expectProblem } from 'tillgate/testing';
 *
 * export async function isRefused(token: string) {
 *   const answer = await fetch('http://127.0.0.1:3000/v1/orders', { headers: { authorization: `Bearer ${token}` } });
 *   const { status, headers } = answer;
 *   expectProblem({ status, headers, body: await answer.json() }, { status: 401, code: 'expired' });
 * }
 * ```
 */
export function expectProblem(answer: AnswerLike, expected: ExpectedProblem): void {
  const compared = compareProblem(answer, expected);
  deepStrictEqual(compared.got, compared.expected);
}

/** Holds the challenge of an answer against the expected one; `got` is `undefined` when there is none. */
export function compareChallenge(answer: AnswerLike, expected: ExpectedChallenge): Comparison {
  const header = headerOf(answer, 'www-authenticate');
  const got = header === undefined ? undefined : bearerChallenge(header);
  if (got === undefined) return { got: header, expected };
  const unnamed = COMPARED_WHEN_NAMED.filter((name) => !(name in expected));
  return { got: Object.fromEntries(Object.entries(got).filter(([name]) => !unnamed.includes(name))), expected };
}

/**
 * Holds the problem of an answer against the expected one.
 *
 * @throws TypeError when the body has not been read
 */
export function compareProblem(answer: AnswerLike, expected: ExpectedProblem): Comparison {
  const type = headerOf(answer, 'content-type')?.split(';')[0];
  if (type === PROBLEM && !isObject(answer.body)) {
    const hint = 'pass { status, headers, body: await answer.json() }';
    throw new TypeError(`the body of the answer is not parsed, got ${describe(answer.body)}; ${hint}`);
  }
  const body: Readonly<Record<string, unknown>> = isObject(answer.body) ? answer.body : {};
  return {
    got: {
      status: answer.status,
      type,
      body: Object.fromEntries(Object.keys(expected).map((name) => [name, body[name]])),
    },
    expected: { status: expected.status, type: PROBLEM, body: { ...expected } },
  };
}

/**
 * A header of an answer, whichever way the answer keeps them.
 *
 * @throws TypeError when this is no answer
 */
export function headerOf(answer: AnswerLike, name: string): string | undefined {
  const { status, headers } = (answer ?? {}) as { status?: unknown; headers?: unknown };
  if (typeof status !== 'number' || !isObject(headers)) {
    throw new TypeError(`expected an answer with status and headers, got ${describe(answer)}; is an await missing?`);
  }
  const value = isHeaders(headers) ? headers.get(name) : headers[name];
  return typeof value === 'string' ? value : undefined;
}

/** By its method, not by `instanceof`: a test environment may have another `Headers`, or none. */
function isHeaders(headers: object): headers is { get(name: string): string | null } {
  return 'get' in headers && typeof headers.get === 'function';
}

/** A parsed object: a stream that nobody has read is none. */
function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !('getReader' in value) && !('pipe' in value);
}

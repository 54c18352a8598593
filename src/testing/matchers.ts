import { AssertionError } from 'node:assert';
import { inspect, isDeepStrictEqual } from 'node:util';
import { describe } from 'tillgate/internal';

/** The compared part of a response; responses of supertest and `fetch` fit. */
export interface ResponseLike {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>> | { get(name: string): string | null };
  /** The parsed body. */
  readonly body?: unknown;
}

/** Members of a problem body; members other than these two are compared only when named. */
export interface ExpectedProblem {
  readonly status: number;
  readonly code: unknown;
  readonly [member: string]: unknown;
}

/** What was received and what was expected, in one shape. */
interface Comparison {
  readonly got: unknown;
  readonly expected: unknown;
  /** The expectation, for a message. */
  readonly expectation: string;
  /** The response, for a message. */
  readonly received: string;
}

const COMPARED_WHEN_NAMED = ['realm', 'resource_metadata', 'error_description'];
const PROBLEM = 'application/problem+json';
/** A scheme, which starts a challenge; a parameter; or a separator (RFC 9110 section 11.6.1). Quotes are written as escapes. */
const CHALLENGE_PART =
  /([\w!#$%&\x27*+.^\x60|~-]+)\s*=\s*(?:\x22((?:[^\x22\\]|\\.)*)\x22|([^\s,]+))|([\w!#$%&\x27*+.^\x60|~-]+)|[\s,]+/gy;

/**
 * Expects a refusal (4xx) whose challenge has exactly these parameters (RFC 6750 section 3); `realm`,
 * `resource_metadata` and `error_description` are compared only when named.
 *
 * @throws AssertionError (node:assert), which every test framework reports with its difference
 * @example
 * ```ts
 * import { expectChallenge } from '@tillgate/testing';
 *
 * export async function requiresAScope(token: string) {
 *   const response = await fetch('http://127.0.0.1:3000/v1/orders', { headers: { authorization: `Bearer ${token}` } });
 *   expectChallenge(response, { error: 'insufficient_scope', scope: 'orders:read' });
 * }
 * ```
 */
export function expectChallenge(response: ResponseLike, expected: Readonly<Record<string, string | undefined>>): void {
  assertEqual(compareChallenge(response, expected));
}

/**
 * Expects a problem body (RFC 9457): its media type, its status, its `code`, and the same status in body and response.
 * Other members, such as `required_scopes`, are compared when named.
 *
 * @throws AssertionError (node:assert)
 * @throws TypeError when the body has not been read
 * @example
 * ```ts
 * import { expectProblem } from '@tillgate/testing';
 *
 * export async function isRefused(token: string) {
 *   const response = await fetch('http://127.0.0.1:3000/v1/orders', { headers: { authorization: `Bearer ${token}` } });
 *   const { status, headers } = response;
 *   expectProblem({ status, headers, body: await response.json() }, { status: 401, code: 'expired' });
 * }
 * ```
 */
export function expectProblem(response: ResponseLike, expected: ExpectedProblem): void {
  assertEqual(compareProblem(response, expected));
}

/** The matchers that `expect()` has after `expect.extend(matchers)`. */
export interface ResponseMatchers<Result = void> {
  /**
   * A refusal (4xx) whose challenge has exactly these parameters (RFC 6750 section 3), or any challenge. `realm`,
   * `resource_metadata` and `error_description` are compared only when named; asymmetric matchers such as
   * `expect.stringContaining()` work.
   *
   * @example
   * ```ts
   * expect(response).toHaveChallenge({ error: 'invalid_token' });
   * ```
   */
  toHaveChallenge(expected?: Readonly<Record<string, unknown>>): Result;
  /**
   * A problem body (RFC 9457) of this status and `code`, with its media type, and the same status on the response itself.
   * Other members are compared when named; asymmetric matchers work.
   *
   * @example
   * ```ts
   * expect(response).toBeProblem({ status: 403, code: 'insufficient_scope' });
   * ```
   */
  toBeProblem(expected: ExpectedProblem): Result;
}

/** Types of `expect()` in Jest with `@types/jest`, and in Vitest, which reads Jest's global matchers too. */
declare global {
  // eslint-disable-next-line @typescript-eslint/no-namespace -- this is how Jest's types are extended
  namespace jest {
    // eslint-disable-next-line @typescript-eslint/no-empty-object-type, @typescript-eslint/no-unused-vars -- the same
    interface Matchers<R, T = {}> extends ResponseMatchers<R> {}
  }
}

// eslint-disable-next-line @typescript-eslint/ban-ts-comment -- it goes into the declarations, where the module may be missing
/** @ts-ignore -- types of `expect()` from `@jest/globals`; in other projects the module is missing */
declare module 'expect' {
  // eslint-disable-next-line @typescript-eslint/no-empty-object-type, @typescript-eslint/no-unused-vars -- the same
  interface Matchers<R extends void | Promise<void>, T = unknown> extends ResponseMatchers<R> {}
}

/** The result of a matcher, as Jest and Vitest expect it. */
export interface MatcherResult {
  readonly pass: boolean;
  readonly message: () => string;
  /** With `expected`, for the difference that Vitest shows. */
  readonly actual?: unknown;
  readonly expected?: unknown;
}

/** The part of a matcher's `this` that is used. */
export interface MatcherContext {
  readonly equals: (a: unknown, b: unknown) => boolean;
}

/**
 * The matchers for `expect.extend()` of Jest, Vitest and frameworks with the same interface.
 *
 * @example
 * ```ts
 * import { matchers } from '@tillgate/testing';
 *
 * export function addTo(expect: { extend(more: typeof matchers): void }) {
 *   expect.extend(matchers);
 * }
 * ```
 */
export const matchers = {
  toHaveChallenge(
    this: MatcherContext,
    response: ResponseLike,
    expected?: Readonly<Record<string, unknown>>,
  ): MatcherResult {
    return toResult(compareChallenge(response, expected), this);
  },
  toBeProblem(this: MatcherContext, response: ResponseLike, expected: ExpectedProblem): MatcherResult {
    return toResult(compareProblem(response, expected), this);
  },
};

function toResult({ got, expected, expectation, received }: Comparison, { equals }: MatcherContext): MatcherResult {
  const pass = equals(got, expected);
  // Jest shows the message of a passing matcher when `.not` was used.
  const message = (): string => `expected ${pass ? 'anything but ' : ''}${expectation}\ngot ${received}`;
  return { pass, message, ...(!pass && { actual: got, expected }) };
}

/** Compares the challenge of a refusal; `expected` is `undefined` where any challenge will do. */
function compareChallenge(response: ResponseLike, expected?: Readonly<Record<string, unknown>>): Comparison {
  const header = headerOf(response, 'www-authenticate');
  const line = header === undefined ? 'no WWW-Authenticate header' : `WWW-Authenticate: ${header}`;
  const received = `${response.status} with ${line}`;
  const expectation = expected ? `the challenge ${inspect(expected)}` : 'a challenge';
  // A success with the header is not a refusal: the caller got what it asked for.
  const isRefusal = response.status >= 400 && response.status < 500;
  const challenge = isRefusal && header !== undefined ? bearerChallenge(header) : undefined;
  const wanted = expected ?? challenge ?? 'a refusal with a Bearer challenge';
  const isCompared = ([name]: [string, unknown]): boolean =>
    !expected || name in expected || !COMPARED_WHEN_NAMED.includes(name);
  const got = challenge ? Object.fromEntries(Object.entries(challenge).filter(isCompared)) : received;
  return { got, expected: wanted, expectation, received };
}

/**
 * Compares the problem body of a response.
 *
 * @throws TypeError when the body has not been read
 */
function compareProblem(response: ResponseLike, expected: ExpectedProblem): Comparison {
  const type = headerOf(response, 'content-type')?.split(';')[0];
  const { status, body } = response;
  if (type === PROBLEM && !isParsed(body)) {
    const hint = 'pass { status, headers, body: await response.json() }';
    throw new TypeError(`the body of the response is not parsed, got ${describe(body)}; ${hint}`);
  }
  const members: Readonly<Record<string, unknown>> = isParsed(body) ? body : {};
  const named = Object.fromEntries(Object.keys(expected).map((name) => [name, members[name]]));
  const got = { status, type, body: named };
  return {
    got,
    expected: { status: expected.status, type: PROBLEM, body: { ...expected } },
    expectation: `the problem ${inspect(expected)}`,
    received: inspect(got, { breakLength: 100 }),
  };
}

/** Reads the Bearer challenge from a `WWW-Authenticate` header, which may have challenges of other schemes too. */
export function bearerChallenge(header: string): Readonly<Record<string, string>> | undefined {
  const challenges: { readonly scheme: string; readonly parameters: Record<string, string> }[] = [];
  for (const [, name, quoted, plain, scheme] of header.matchAll(CHALLENGE_PART)) {
    if (scheme !== undefined) challenges.push({ scheme: scheme.toLowerCase(), parameters: {} });
    const parameters = challenges.at(-1)?.parameters;
    if (name === undefined || !parameters) continue;
    parameters[name.toLowerCase()] = quoted?.replace(/\\(.)/g, '$1') ?? plain ?? '';
  }
  return challenges.find(({ scheme }) => scheme === 'bearer')?.parameters;
}

function assertEqual({ got, expected, expectation, received }: Comparison): void {
  if (isDeepStrictEqual(got, expected)) return;
  const message = `expected ${expectation}\ngot ${received}`;
  throw new AssertionError({ message, actual: got, expected, operator: 'deepStrictEqual' });
}

function headerOf(response: ResponseLike, name: string): string | undefined {
  const { status, headers } = (response ?? {}) as { status?: unknown; headers?: unknown };
  if (typeof status !== 'number' || !isParsed(headers)) {
    throw new TypeError(`expected a response with status and headers, got ${describe(response)}; is an await missing?`);
  }
  // By its method, not by `instanceof`: a test environment may have another `Headers`, or none.
  const { get } = headers as { readonly get?: (name: string) => unknown };
  const value = typeof get === 'function' ? get.call(headers, name) : headers[name];
  return typeof value === 'string' ? value : undefined;
}

/** Whether a value is an object but not an unread stream. */
function isParsed(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !('getReader' in value) && !('pipe' in value);
}

import { inspect } from 'node:util';
import { compareChallenge, compareProblem, headerOf } from './expectations';
import type { AnswerLike, Comparison, ExpectedChallenge, ExpectedProblem } from './expectations';

/** What `expect()` can say about an answer once the matchers are there. */
export interface AnswerMatchers<Result = void> {
  /**
   * A challenge with exactly these parameters (RFC 6750 section 3), or any at all. `realm`, `resource_metadata` and
   * `error_description` are compared only when named; asymmetric matchers such as `expect.stringContaining()` fit.
   *
   * @example
   * ```ts
   * expect(answer).toHaveChallenge({ error: 'invalid_token' });
   * ```
   */
  toHaveChallenge(expected?: ExpectedChallenge): Result;
  /**
   * A problem body (RFC 9457) of this status and `code`, with the media type, and the same status on the answer itself.
   * Other members are compared when named; asymmetric matchers fit.
   *
   * @example
   * ```ts
   * expect(answer).toBeProblem({ status: 403, code: 'insufficient_scope' });
   * ```
   */
  toBeProblem(expected: ExpectedProblem): Result;
}

/** What a matcher finds; Jest and Vitest agree about it. */
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
 * The matchers for `expect.extend()` of Jest, Vitest or whatever extends alike.
 *
 * @example
 * ```ts
 * import { matchers } from 'tillgate/testing';
 *
 * export function addTo(expect: { extend(more: typeof matchers): void }) {
 *   expect.extend(matchers);
 * }
 * ```
 */
export const matchers = {
  toHaveChallenge(this: MatcherContext, answer: AnswerLike, expected?: ExpectedChallenge): MatcherResult {
    const compared = compareChallenge(answer, expected ?? {});
    const got = `${answer.status} with ${challengeLine(answer)}`;
    if (expected) return judge(compared, `the challenge ${inspect(expected)}`, got, this);
    return toResult(compared.got !== undefined, compared, 'a challenge', got);
  },
  toBeProblem(this: MatcherContext, answer: AnswerLike, expected: ExpectedProblem): MatcherResult {
    const compared = compareProblem(answer, expected);
    return judge(compared, `the problem ${inspect(expected)}`, inspect(compared.got, { breakLength: 100 }), this);
  },
};

function judge(compared: Comparison, wanted: string, got: string, { equals }: MatcherContext): MatcherResult {
  return toResult(equals(compared.got, compared.expected), compared, wanted, got);
}

function toResult(pass: boolean, compared: Comparison, wanted: string, got: string): MatcherResult {
  // The message of a match is shown where `.not` was asked for.
  const message = (): string => `expected ${pass ? 'anything but ' : ''}${wanted}\ngot ${got}`;
  return { pass, message, ...(!pass && { actual: compared.got, expected: compared.expected }) };
}

function challengeLine(answer: AnswerLike): string {
  const header = headerOf(answer, 'www-authenticate');
  return header === undefined ? 'no WWW-Authenticate header' : `WWW-Authenticate: ${header}`;
}

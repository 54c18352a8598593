import { compareChallenge, compareProblem } from './expectations';
import type { Comparison, ExpectedProblem, ResponseLike } from './expectations';

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
 * import { matchers } from 'tillgate/testing';
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

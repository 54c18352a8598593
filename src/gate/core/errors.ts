import { ownMembers } from './objects';
import { DEFAULT_PRESENTATION, refusalHeaders } from './problem';
import { REASONS } from './reasons';
import type { Reason } from './reasons';

/**
 * A request that is refused. One class for all of them: `reason` says which, and `status` comes from the row of that
 * reason in `REASONS`. It carries no stack trace: a refusal is about a request, not about a place in the code.
 *
 * @throws TypeError when the reason is unknown
 *
 * @example
 * ```ts
 * import { AuthError } from 'tillgate';
 *
 * function isOutage(error: unknown): boolean {
 *   return error instanceof AuthError && error.status === 503;
 * }
 * ```
 */
export class AuthError extends Error {
  declare readonly reason: Reason;
  /** HTTP status of the response. */
  declare readonly status: 400 | 401 | 403 | 429 | 503;
  declare readonly publicDetail: string;
  /** For operators: never part of a response. */
  declare readonly privateDetail: string | undefined;
  declare readonly requiredScopes: readonly string[] | undefined;
  declare readonly retryAfterSeconds: number;
  /** For `dpop_nonce_required`: the nonce for the next proof (RFC 9449 section 8). */
  declare readonly nonce: string | undefined;
  declare private readonly presentedHeaders: Readonly<Record<string, string>> | undefined;

  constructor(
    reason: Reason,
    options: {
      /** For operators: log and `onDecision` only, never the response. Must not contain a token. */
      readonly privateDetail?: string | undefined;
      /** The original failure, for operators. */
      readonly cause?: unknown;
      /** Scopes that would have been enough (RFC 6750 section 3, `scope`). */
      readonly requiredScopes?: readonly string[] | undefined;
      /** Seconds after which a retry makes sense, for 429 and 503. Default 5. */
      readonly retryAfterSeconds?: number | undefined;
      /** For the header `DPoP-Nonce` of the response (RFC 9449 section 8). */
      readonly nonce?: string | undefined;
      /** What the caller may read. Default: the text of the reason. */
      readonly publicDetail?: string | undefined;
      /** Headers of the response. Default: a challenge with realm `api`, or `Retry-After`. */
      readonly headers?: Readonly<Record<string, string>> | undefined;
    } = {},
  ) {
    if (!Object.hasOwn(REASONS, reason)) throw new TypeError(`AuthError: unknown reason ${JSON.stringify(reason)}`);
    const { status, detail } = REASONS[reason];
    const given = ownMembers(options);
    const { stackTraceLimit } = Error;
    Reflect.set(Error, 'stackTraceLimit', 0);
    try {
      super(detail, 'cause' in given ? { cause: given.cause } : undefined);
    } finally {
      Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
    }
    this.name = 'AuthError';
    this.reason = reason;
    this.status = status;
    this.publicDetail = given.publicDetail ?? detail;
    this.privateDetail = given.privateDetail;
    this.requiredScopes = given.requiredScopes;
    this.retryAfterSeconds = given.retryAfterSeconds ?? 5;
    this.nonce = given.nonce;
    this.presentedHeaders = given.headers;
  }

  /** Headers of the response: `WWW-Authenticate` (RFC 6750 section 3), or `Retry-After` for 429 and 503. */
  get headers(): Readonly<Record<string, string>> {
    return this.presentedHeaders ?? refusalHeaders(this, DEFAULT_PRESENTATION);
  }
}

/**
 * The configuration cannot be used. Carries every problem, so that one start is enough to fix them all.
 * No problem text holds a secret.
 *
 * @example
 * ```ts
 * import { ConfigurationError } from 'tillgate';
 * import { readSettings } from 'tillgate/env';
 *
 * try {
 *   readSettings(process.env);
 * } catch (error) {
 *   if (error instanceof ConfigurationError) error.problems.forEach((problem) => console.error(problem));
 * }
 * ```
 */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  /** One sentence each: the variable, what was got, what is expected, how to fix it. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`wrong configuration:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.problems = Object.freeze([...problems]);
  }
}

import { serializeChallenge } from './challenge';
import { OPAQUE_INVALID_TOKEN, REASONS } from './reasons';
import type { Reason, ReasonRow } from './reasons';

/** What is the same for every refusal of one gate. */
export interface Presentation {
  /** `realm` of the challenge (RFC 9110 section 11.5). */
  readonly realm: string;
  /** Address of the protected resource metadata, the challenge's `resource_metadata` (RFC 9728 section 5.1). */
  readonly resourceMetadata?: string | undefined;
  /** Whether the caller learns the exact reason of an `invalid_token`; `false` in production. */
  readonly exposeReasons: boolean;
}

/** Details of one refusal. */
export interface AuthErrorOptions {
  /** For operators: log and `onDecision` only, never the wire. Must not contain a token. */
  readonly privateDetail?: string | undefined;
  /** The original failure, for operators. */
  readonly cause?: unknown;
  /** Scopes that would have been enough (RFC 6750 section 3, `scope`). */
  readonly requiredScopes?: readonly string[] | undefined;
  /** Seconds after which a retry makes sense, for 503. Default 5. */
  readonly retryAfterSeconds?: number | undefined;
  readonly presentation?: Presentation | undefined;
}

/** The body of a refusal (RFC 9457), in the order in which it is written. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: string;
  readonly required_scopes?: readonly string[];
  readonly request_id?: string;
}

const DEFAULT_PRESENTATION: Presentation = { realm: 'api', exposeReasons: false };

/**
 * A request that is refused. One class for all of them: `reason` says which, and `status`, `headers` and the
 * problem body come from that reason's row, so they cannot disagree. It carries no stack trace.
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
  override readonly name = 'AuthError';
  readonly reason: Reason;
  /** HTTP status of the answer: 400, 401, 403 or 503. */
  readonly status: ReasonRow['status'];
  /** Operators' detail: never part of an answer. */
  readonly privateDetail: string | undefined;
  readonly requiredScopes: readonly string[] | undefined;
  readonly retryAfterSeconds: number;
  readonly #presentation: Presentation;

  constructor(reason: Reason, options: AuthErrorOptions = {}) {
    // A refusal is about a request, not about a place in the code: a stack says nothing, and costs more than all the rest.
    const { stackTraceLimit } = Error;
    Reflect.set(Error, 'stackTraceLimit', 0);
    super(REASONS[reason].detail, 'cause' in options ? { cause: options.cause } : undefined);
    Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
    this.reason = reason;
    this.status = REASONS[reason].status;
    this.privateDetail = options.privateDetail;
    this.requiredScopes = options.requiredScopes;
    this.retryAfterSeconds = options.retryAfterSeconds ?? 5;
    this.#presentation = options.presentation ?? DEFAULT_PRESENTATION;
  }

  /** The same refusal as one particular gate presents it. */
  presentedAs(presentation: Presentation): AuthError {
    return new AuthError(this.reason, {
      privateDetail: this.privateDetail,
      ...('cause' in this ? { cause: this.cause } : {}),
      requiredScopes: this.requiredScopes,
      retryAfterSeconds: this.retryAfterSeconds,
      presentation,
    });
  }

  /** Headers of the answer: `WWW-Authenticate` (RFC 6750 section 3) below 500, `Retry-After` (RFC 9110 section 10.2.3) for 503. */
  get headers(): Readonly<Record<string, string>> {
    if (this.status === 503) return { 'Retry-After': String(this.retryAfterSeconds) };
    const row = this.#publicRow();
    const { realm, resourceMetadata } = this.#presentation;
    const challenge = serializeChallenge('Bearer', [
      ['realm', realm],
      ['error', row.error],
      ['error_description', row.error && row.detail],
      ['scope', this.requiredScopes?.join(' ')],
      ['resource_metadata', resourceMetadata],
    ]);
    return { 'WWW-Authenticate': challenge };
  }

  /** The problem body (RFC 9457). `code` is the reason, or `invalid_token` where the gate does not expose reasons. */
  problem(requestId?: string): Problem {
    const row = this.#publicRow();
    const code = row === OPAQUE_INVALID_TOKEN ? 'invalid_token' : this.reason;
    return {
      type: `urn:tillgate:problem:${code}`,
      title: row.title,
      status: row.status,
      detail: row.detail,
      code,
      ...(this.requiredScopes && { required_scopes: this.requiredScopes }),
      ...(requestId !== undefined && { request_id: requestId }),
    };
  }

  #publicRow(): ReasonRow {
    const row: ReasonRow = REASONS[this.reason];
    return row.error === 'invalid_token' && !this.#presentation.exposeReasons ? OPAQUE_INVALID_TOKEN : row;
  }
}

import { ownMembers } from './objects';
import { REASONS, type Reason, type ReasonRow } from './reasons';
import { DEFAULT_PRESENTATION, publicReason, refusalHeaders, type Presentation } from './refusal';

/** How the gate that refused presents an error; the default where no gate did. Not a member of the class, which apps see. */
export let presentationOf: (error: AuthError) => Presentation;
/** The same refusal with the headers, the `code` and the `message` of the gate that refused. */
export let presentError: (error: AuthError, presentation: Presentation) => AuthError;
let setClient: (error: AuthError, client: AuthError['client']) => void;

/**
 * A request that is refused. One class for all of them: `reason` says which, and the rest comes from the row of that reason
 * in `REASONS`. Its enumerable members and `message` may be in a response; `reason`, `client`, `privateDetail` and `cause` are
 * for operators. It carries no stack trace: a refusal is about a request, not about a place in the code.
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
  /** HTTP status of the response. */
  readonly status: ReasonRow['status'];
  /** The same, for error handlers that look for this name. */
  readonly statusCode: ReasonRow['status'];
  /** The reason as the caller may know it: `invalid_token` for every 401 about a token where reasons are not exposed. */
  readonly code: Reason | 'invalid_token';
  /** Whether `message` may be in the response: it always may. */
  readonly expose = true;
  readonly #reason: Reason;
  readonly #details: Exclude<ConstructorParameters<typeof AuthError>[1], undefined>;
  #presentation = DEFAULT_PRESENTATION;
  #client: AuthError['client'];

  static {
    presentationOf = (error) => error.#presentation;
    presentError = (error, presentation) => {
      const presented = new AuthError(error.#reason, error.#details);
      presented.#presentation = presentation;
      presented.#client = error.#client;
      const { code, row } = publicReason(error.#reason, presentation);
      return Object.assign(presented, { code, message: row.detail });
    };
    setClient = (error, client) => void (error.#client ??= client);
  }

  constructor(
    reason: Reason,
    details: {
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
    } = {},
  ) {
    if (!Object.hasOwn(REASONS, reason)) throw new TypeError(`AuthError: unknown reason ${JSON.stringify(reason)}`);
    const given = ownMembers(details);
    const { code, row } = publicReason(reason, DEFAULT_PRESENTATION);
    const { stackTraceLimit } = Error;
    Reflect.set(Error, 'stackTraceLimit', 0);
    try {
      super(row.detail, 'cause' in given ? { cause: given.cause } : undefined);
    } finally {
      Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
    }
    this.#reason = reason;
    this.#details = given;
    this.status = this.statusCode = REASONS[reason].status;
    this.code = code;
  }

  /** Why the request was refused, for operators. */
  get reason(): Reason {
    return this.#reason;
  }

  /** Whose token was refused, where its signature or its issuer vouches for it. */
  get client(): { readonly issuer: string; readonly clientId: string | undefined } | undefined {
    return this.#client;
  }

  /** For operators: never part of a response. */
  get privateDetail(): string | undefined {
    return this.#details.privateDetail;
  }

  /** Scopes that would have been enough. */
  get requiredScopes(): readonly string[] | undefined {
    return this.#details.requiredScopes;
  }

  /** Seconds after which a retry makes sense, for 429 and 503. */
  get retryAfterSeconds(): number {
    return this.#details.retryAfterSeconds ?? 5;
  }

  /** For `dpop_nonce_required`: the nonce for the next proof (RFC 9449 section 8). */
  get nonce(): string | undefined {
    return this.#details.nonce;
  }

  /**
   * Headers of the response: `WWW-Authenticate` (RFC 6750 section 3), or `Retry-After` for 429 and 503. Those of the gate that
   * refused; a challenge with realm `api` where no gate did.
   */
  get headers(): Readonly<Record<string, string>> {
    return refusalHeaders(this, this.#presentation);
  }
}
Object.defineProperty(AuthError.prototype, 'name', { value: 'AuthError', configurable: true, writable: true });

/** Adds whose token was refused to an error that does not know it. */
export function identify(error: unknown, client: AuthError['client']): unknown {
  if (error instanceof AuthError && client) setClient(error, { issuer: client.issuer, clientId: client.clientId });
  return error;
}

import { ownMembers } from './objects';
import { DEFAULT_PRESENTATION, publicCode, publicDetail, refusalHeaders } from './problem';
import type { Presentation } from './problem';
import { REASONS } from './reasons';
import type { Reason, ReasonRow } from './reasons';

/*
 * What only the gate does with an AuthError: it is not part of the class, which apps see.
 */
let presentationIn: (error: AuthError) => Presentation;
let present: (error: AuthError, presentation: Presentation) => AuthError;
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
    presentationIn = (error) => error.#presentation;
    present = (error, presentation) => {
      const presented = new AuthError(error.#reason, error.#details);
      presented.#presentation = presentation;
      presented.#client = error.#client;
      return Object.assign(presented, {
        code: publicCode(error.#reason, presentation),
        message: publicDetail(error.#reason, presentation),
      });
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
    const { stackTraceLimit } = Error;
    Reflect.set(Error, 'stackTraceLimit', 0);
    try {
      super(publicDetail(reason, DEFAULT_PRESENTATION), 'cause' in given ? { cause: given.cause } : undefined);
    } finally {
      Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
    }
    this.#reason = reason;
    this.#details = given;
    this.status = this.statusCode = REASONS[reason].status;
    this.code = publicCode(reason, DEFAULT_PRESENTATION);
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

/** How the gate that refused presents an error; the default where no gate did. */
export function presentationOf(error: AuthError): Presentation {
  return presentationIn(error);
}

/** The same refusal with the headers, the `code` and the `message` of the gate that refused. */
export function presentError(error: AuthError, presentation: Presentation): AuthError {
  return present(error, presentation);
}

/** Adds whose token was refused to an error that does not know it. */
export function identify(error: unknown, client: AuthError['client']): unknown {
  if (error instanceof AuthError && client) setClient(error, { issuer: client.issuer, clientId: client.clientId });
  return error;
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

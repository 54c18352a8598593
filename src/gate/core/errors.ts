import { STATUS_CODES } from 'node:http';
import { ownMembers } from './objects';
import { option } from './options';
import { OPAQUE_INVALID_TOKEN, REASONS, type Reason, type ReasonRow } from './reasons';
import { isHttpUrl } from './urls';

/** Base URL of the pages about problems. */
export const PROBLEM_TYPES = option('an http(s) URL', (given) => {
  return typeof given === 'string' && isHttpUrl(given) ? given : undefined;
});

/** What the caller is told about one refusal. */
type RefusalFacts = Pick<AuthError, 'reason' | 'requiredScopes' | 'retryAfterSeconds'> &
  Partial<Pick<AuthError, 'nonce'>>;

/** How a gate presents its refusals. */
export interface Presentation {
  /** `realm` of the challenge (RFC 9110 section 11.5). */
  readonly realm: string;
  /** URL of the protected resource metadata, the challenge's `resource_metadata` (RFC 9728 section 5.1). */
  readonly resourceMetadata?: string | undefined;
  /** Scopes that the challenge of a 401 names. */
  readonly challengeScopes?: readonly string[] | undefined;
  /** Base URL of the pages about problems. Default: `type` is `about:blank` (RFC 9457 section 4.2.1). */
  readonly problemTypes?: string | undefined;
  /** Whether the caller learns the exact reason of an `invalid_token`; `false` in production. */
  readonly exposeReasons: boolean;
  /** What challenges say about DPoP, where it is accepted (RFC 9449 section 7.1). */
  readonly dpop?:
    | {
        /** Accepted algorithms of proofs, separated by spaces. */
        readonly algorithms: string;
        /** Whether the error is about a request with the DPoP scheme; the Bearer challenge is left out then. */
        readonly used: boolean;
      }
    | undefined;
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

/** Refusals that no gate presents: exact reasons stay private. */
export const DEFAULT_PRESENTATION: Presentation = { realm: 'api', exposeReasons: false };

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

/** `type` of a problem: the page about its code, or `about:blank` where no pages exist. */
export function problemType(code: string, problemTypes: string | undefined): string {
  return problemTypes === undefined ? 'about:blank' : problemTypes + code;
}

/** `title` of a problem: the phrase of the status where `type` is `about:blank` (RFC 9457 section 4.2.1), else its own. */
export function problemTitle(status: number, title: string | undefined, type: string | undefined): string {
  const phrase = STATUS_CODES[status];
  const isBlank = type === undefined || type === 'about:blank';
  return (isBlank ? (phrase ?? title) : (title ?? phrase)) ?? 'Error';
}

/** The text about a refusal that the caller may see. */
function publicDetail(reason: Reason, presentation: Presentation): string {
  return publicRow(reason, presentation).detail;
}

/** The reason as the caller may know it. */
function publicCode(reason: Reason, presentation: Presentation): Reason | 'invalid_token' {
  return publicRow(reason, presentation) === OPAQUE_INVALID_TOKEN ? 'invalid_token' : reason;
}

/** Whether a refusal is not about the token: the caller keeps it and retries. */
export function isTemporary(status: number): boolean {
  return status === 429 || status === 503;
}

/** `WWW-Authenticate` (RFC 6750 section 3), or `Retry-After` (RFC 9110 section 10.2.3) where the refusal is temporary. */
export function refusalHeaders(refusal: RefusalFacts, presentation: Presentation): Readonly<Record<string, string>> {
  const row = publicRow(refusal.reason, presentation);
  const { status, detail } = row;
  const error = errorOf(row);
  if (isTemporary(status)) return { 'Retry-After': String(refusal.retryAfterSeconds) };
  // What the token lacks, else what a new token should have (RFC 6750 section 3).
  const needsToken = status === 401 && (error === undefined || error === 'invalid_token');
  const challengeWith = (scope: string | undefined): string => {
    const parameters: readonly ChallengeParameter[] = [
      ['realm', presentation.realm],
      ['error', error],
      ['error_description', error && detail],
      ['scope', scope],
      ['resource_metadata', presentation.resourceMetadata],
    ];
    return challengeOf(parameters, presentation.dpop);
  };
  const scopes = refusal.requiredScopes ?? (needsToken ? presentation.challengeScopes : undefined);
  const scope = scopes && fittingScopes(scopes, MAX_CHALLENGE_LENGTH - challengeWith('').length);
  const { nonce } = refusal;
  return { 'WWW-Authenticate': challengeWith(scope), ...(nonce !== undefined && { 'DPoP-Nonce': nonce }) };
}

/** Clients and proxies limit the head of a response, many to 8 KB. */
const MAX_CHALLENGE_LENGTH = 2_048;

/** The first scopes of a list, none of them cut; `undefined` where the first one has no room. The problem body has all of them. */
function fittingScopes(scopes: readonly string[], room: number): string | undefined {
  let end = 0;
  let length = -1;
  // The quotation marks of `quote()` count as the separator.
  while (end < scopes.length && (length += quote(scopes[end] as string).length - 1) <= room) end++;
  return end === 0 && scopes.length > 0 ? undefined : scopes.slice(0, end).join(' ');
}

/** Both challenges where both schemes are accepted; the error is in that of the scheme that the request used. */
function challengeOf(parameters: readonly ChallengeParameter[], dpop: Presentation['dpop']): string {
  if (!dpop) return serializeChallenge('Bearer', parameters);
  const algorithms = ['algs', dpop.algorithms] as const;
  if (dpop.used) return serializeChallenge('DPoP', [...parameters, algorithms]);
  return `${serializeChallenge('Bearer', parameters)}, ${serializeChallenge('DPoP', [algorithms])}`;
}

/** The problem body. `code` is the reason, or `invalid_token` where reasons are not exposed. */
export function refusalProblem(refusal: RefusalFacts, presentation: Presentation, requestId?: string): Problem {
  const row = publicRow(refusal.reason, presentation);
  const code = publicCode(refusal.reason, presentation);
  return {
    type: problemType(code, presentation.problemTypes),
    title: problemTitle(row.status, row.title, presentation.problemTypes),
    status: row.status,
    detail: row.detail,
    code,
    ...(refusal.requiredScopes && { required_scopes: refusal.requiredScopes }),
    ...(requestId !== undefined && { request_id: requestId }),
  };
}

function publicRow(reason: Reason, { exposeReasons }: Presentation): typeof OPAQUE_INVALID_TOKEN {
  const row = REASONS[reason];
  return errorOf(row) === 'invalid_token' && !exposeReasons ? OPAQUE_INVALID_TOKEN : row;
}

/** Not an inherited member: a polluted prototype must not put an `error` into the plain challenge. */
function errorOf(row: Pick<ReasonRow, 'error'>): ReasonRow['error'] {
  return Object.hasOwn(row, 'error') ? row.error : undefined;
}

/** One auth-param of a challenge; a value of `undefined` leaves the parameter out. */
type ChallengeParameter = readonly [name: string, value: string | undefined];

/** Serialises a challenge (RFC 9110 section 11.6.1). Any value is safe: what cannot be in a header is replaced. */
export function serializeChallenge(
  scheme: 'Bearer' | 'Basic' | 'DPoP',
  parameters: readonly ChallengeParameter[],
): string {
  let challenge: string = scheme;
  let separator = ' ';
  for (const [name, value] of parameters) {
    if (value === undefined) continue;
    challenge += `${separator}${name}=${quote(value)}`;
    separator = ', ';
  }
  return challenge;
}

/** Writes a quoted-string (RFC 9110 section 5.6.4); control characters and everything beyond ASCII become `?`. */
export function quote(text: string): string {
  return `"${text.replace(/[^\x20-\x7e]/gu, '?').replace(/["\\]/g, '\\$&')}"`;
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

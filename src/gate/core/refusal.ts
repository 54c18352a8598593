import { STATUS_CODES } from 'node:http';
import { challengeOf, fittingScopes, type ChallengeParameter, type DpopChallenge } from './challenge';
import { option } from './options';
import { OPAQUE_INVALID_TOKEN, REASONS, type Reason, type ReasonRow } from './reasons';
import { isHttpUrl } from './urls';

/** Base URL of the pages about problems. */
export const PROBLEM_TYPES = option('an http(s) URL', (given) => {
  return typeof given === 'string' && isHttpUrl(given) ? given : undefined;
});

/** What the caller is told about one refusal. */
interface RefusalFacts {
  readonly reason: Reason;
  readonly requiredScopes: readonly string[] | undefined;
  readonly retryAfterSeconds: number;
  readonly nonce?: string | undefined;
}

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
  readonly dpop?: DpopChallenge | undefined;
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

/** Whether a refusal is not about the token: the caller keeps it and retries. */
export function isTemporary(status: number): boolean {
  return status === 429 || status === 503;
}

/** `WWW-Authenticate` (RFC 6750 section 3), or `Retry-After` (RFC 9110 section 10.2.3) where the refusal is temporary. */
export function refusalHeaders(refusal: RefusalFacts, presentation: Presentation): Readonly<Record<string, string>> {
  const { row } = publicReason(refusal.reason, presentation);
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
  const scope = scopes && fittingScopes(scopes, challengeWith('').length);
  const { nonce } = refusal;
  return { 'WWW-Authenticate': challengeWith(scope), ...(nonce !== undefined && { 'DPoP-Nonce': nonce }) };
}

/** The problem body. `code` is the reason, or `invalid_token` where reasons are not exposed. */
export function refusalProblem(refusal: RefusalFacts, presentation: Presentation, requestId?: string): Problem {
  const { code, row } = publicReason(refusal.reason, presentation);
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

/** What the caller may know of a reason: `invalid_token` for every 401 about a token where reasons are not exposed. */
export function publicReason(reason: Reason, { exposeReasons }: Presentation): PublicReason {
  const row = REASONS[reason];
  const isHidden = errorOf(row) === 'invalid_token' && !exposeReasons;
  return isHidden ? { code: 'invalid_token', row: OPAQUE_INVALID_TOKEN } : { code: reason, row };
}

interface PublicReason {
  readonly code: Reason | 'invalid_token';
  readonly row: typeof OPAQUE_INVALID_TOKEN;
}

/** Not an inherited member: a polluted prototype must not put an `error` into the plain challenge. */
function errorOf(row: Pick<ReasonRow, 'error'>): ReasonRow['error'] {
  return Object.hasOwn(row, 'error') ? row.error : undefined;
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

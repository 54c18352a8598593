import { attempt, checksUntil, parseToken } from 'tillgate/internal';
import { AuthError, REASONS, type Decision, type Explanation, type Reason } from 'tillgate';
import type { ClientResource } from '../auth-server/index';

/** Why a request was decided as it was. Holds claims, never a token. */
export interface Why {
  readonly outcome: Decision['outcome'];
  readonly checks: Explanation['checks'];
  /** What the failed check found, and what it accepts. */
  readonly got?: string;
  readonly expected?: string;
  /** What to do about a refusal. */
  readonly fix?: string;
  readonly claims?: Readonly<Record<string, unknown>> | undefined;
  /** Whether the signature of the token was verified. */
  readonly verified: boolean;
}

/** What an explanation draws on. */
export interface Facts {
  readonly issuer: string;
  readonly audience: string;
  readonly client: (clientId: string) => ClientResource | undefined;
  /** What to change in the configuration, or what the operator does. */
  readonly advise: (reason: Reason, token: string) => string | undefined;
}

/** What the gate of an app decided about a request, as `static/observer.cjs` reports it: without the signature of the token. */
export interface ReportedDecision {
  readonly outcome: Decision['outcome'];
  readonly reason?: Reason;
  /** For operators. */
  readonly detail?: string;
  /** Whether the claims were refused before the key was known. */
  readonly unverified?: boolean;
  readonly required?: readonly string[];
  /** Scopes of an accepted token. */
  readonly granted?: readonly string[];
  readonly client_id?: string;
  /** Header and payload of the token. */
  readonly token?: string;
}

/** Explains a decision of the gate by what is known now. */
export function whyOf({ token, ...decision }: ReportedDecision, facts: Facts): Why {
  const { outcome, reason, detail, unverified, required, granted } = decision;
  // Any signature: it is not checked.
  const raw = token === undefined ? '' : `${token}.AAAA`;
  const claims = claimsOf(raw);
  const isAccepted = granted !== undefined;
  if (reason === undefined || !Object.hasOwn(REASONS, reason)) {
    return { outcome, checks: isAccepted ? checksUntil(undefined, 1) : [], claims, verified: isAccepted };
  }
  const cause = unverified === true ? new AuthError('unknown_key') : undefined;
  const checks = checksUntil(new AuthError(reason, { privateDetail: detail, cause }), 1);
  const verified = isSigned(checks);
  // A request can come from anybody: what it contains suggests a configuration only where its signature was good.
  const known = verified ? facts : { ...facts, advise: () => undefined };
  return { outcome, checks, ...refusalOf({ reason, required, granted }, raw, known), claims, verified };
}

/** Explains what a gate makes of a token, for a request that requires no scope. */
export function whyOfToken({ accepted, checks, auth }: Explanation, raw: string, facts: Facts): Why {
  const reason = checks.find(({ outcome }) => outcome === 'failed')?.reason;
  return {
    outcome: accepted ? 'authenticated' : 'refused',
    checks: checks.filter(({ check }) => check !== 'scope'),
    ...(reason && refusalOf({ reason, required: undefined, granted: auth?.scopes }, raw, facts)),
    claims: auth?.claims ?? claimsOf(raw),
    verified: isSigned(checks),
  };
}

function isSigned(checks: Explanation['checks']): boolean {
  return checks.some(({ check, outcome }) => check === 'signature' && outcome === 'passed');
}

interface Refusal {
  readonly reason: Reason;
  readonly required: readonly string[] | undefined;
  readonly granted: readonly string[] | undefined;
}

function refusalOf(refusal: Refusal, raw: string, facts: Facts): Pick<Why, 'got' | 'expected' | 'fix'> {
  const { header, claims }: TokenParts = attempt(() => parseToken(raw)) ?? { header: {}, claims: {} };
  const id = claims['client_id'];
  const client = typeof id === 'string' ? facts.client(id) : undefined;
  const known = { ...refusal, raw, header, claims, client };
  return { ...comparisonOf(known, facts), fix: fixOf(known, facts) };
}

type TokenParts = Pick<ReturnType<typeof parseToken>, 'header' | 'claims'>;

/** A refusal, with what is known of its token. */
interface KnownRefusal extends Refusal, TokenParts {
  readonly raw: string;
  readonly client: ClientResource | undefined;
}

function fixOf({ reason, required = [], raw, claims: { iss, aud }, client }: KnownRefusal, facts: Facts): string {
  if (OF_ANOTHER_ISSUER.has(reason) && iss === facts.issuer && aud === facts.audience) {
    return `The token is good, and the app has options for another issuer. Leave issuer, audience and keys out of authenticate(): then TILLGATE_AUTH_URL=${iss} and TILLGATE_AUDIENCE=${aud} count, which tillgate dev has set.`;
  }
  if (reason === 'insufficient_scope' && client) {
    const registered = client.scope.split(' ');
    const lacking = required.filter((scope) => !registered.includes(scope));
    return lacking.length === 0
      ? `Request the token with scope=${required.join(' ')}: ${client.client_id} is registered with it.`
      : `Add ${lacking.join(' ')} to the scopes of ${client.client_id}, if it should have this access, then request a new token.`;
  }
  if (reason === 'superseded' && client) {
    return `Request a new token for ${client.client_id}. Its credential has changed since this one was issued, as intended. How a caller does so by itself: docs/callers.md.`;
  }
  return (raw === '' ? undefined : facts.advise(reason, raw)) ?? REASONS[reason].caller;
}

/** How an app refuses a good token of this token server where its options name another one. */
const OF_ANOTHER_ISSUER: ReadonlySet<Reason> = new Set<Reason>(['wrong_issuer', 'wrong_audience', 'keys_unavailable']);

/** What was compared, where the reason alone does not say it. */
function comparisonOf(
  { reason, required = [], granted = [], header, claims, client }: KnownRefusal,
  { issuer, audience }: Facts,
): Pick<Why, 'got' | 'expected'> {
  switch (reason) {
    case 'missing_token':
      return { got: 'no Authorization header', expected: 'Authorization: Bearer <ACCESS_TOKEN>' };
    case 'insufficient_scope':
      return { got: granted.join(' ') || 'no scopes', expected: required.join(' ') };
    case 'superseded':
      return { got: text(claims['generation']), ...(client && { expected: `${client.generation} or later` }) };
    case 'wrong_issuer':
      return { got: text(claims['iss']), expected: issuer };
    case 'wrong_audience':
      return { got: text(claims['aud']), expected: audience };
    case 'expired':
      return { got: `expired at ${time(claims['exp'])}`, expected: 'a later time' };
    case 'not_yet_valid':
      return { got: `valid from ${time(claims['nbf'] ?? claims['iat'])}`, expected: 'an earlier time' };
    case 'wrong_type':
      return { got: `typ ${text(header['typ'])}`, expected: 'an access token' };
    case 'algorithm_not_allowed':
      return { got: `alg ${text(header['alg'])}`, expected: 'an asymmetric algorithm, such as RS256' };
    default:
      return {};
  }
}

function claimsOf(raw: string): Why['claims'] {
  return attempt(() => parseToken(raw).claims);
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'none');
}

/** NumericDate as ISO 8601. */
function time(value: unknown): string {
  const date = new Date(Number(value) * 1000);
  return Number.isNaN(date.getTime()) ? text(value) : date.toISOString();
}

import { AuthError } from '../core/auth-error';
import { isObject, ownValue } from '../core/objects';
import type { Preset } from './presets';

/** What the claims of one issuer's tokens are checked against. */
export interface ClaimRules {
  readonly preset: Preset;
  /** Exactly the token's `iss`. */
  readonly issuer: string;
  /** One of these must be in `aud`; `false` accepts a token without `aud`, or with any. */
  readonly audiences: readonly string[] | false;
  /** Accepted client ids; `undefined`: any. In place of an audience, for issuers that have none (Cognito). */
  readonly clientIds: readonly string[] | undefined;
  readonly clockToleranceMs: number;
  /** Longest accepted `exp - iat`. */
  readonly maxTokenAgeMs: number;
  /** Members of `cnf` whose proof of possession is checked after the claims; a token with another one is refused. */
  readonly confirmations: readonly Confirmation[];
}

/** A confirmation method (RFC 7800 section 3.1): `jkt` of DPoP (RFC 9449), `x5t#S256` of mutual TLS (RFC 8705). */
export type Confirmation = 'jkt' | 'x5t#S256';

/** Claims whose types and presence have been checked. */
export interface CheckedClaims {
  readonly clientId: string;
  readonly subject: string | undefined;
  readonly tokenId: string | undefined;
  readonly expiresAtMs: number;
  /** First moment at which `nbf` allows the token (RFC 7519 section 4.1.5), clock tolerance included. */
  readonly acceptedFromMs: number;
  /** First moment at which `exp` forbids it, clock tolerance included. */
  readonly acceptedUntilMs: number;
}

type Claims = Readonly<Record<string, unknown>>;

/**
 * Checks the claims of a token whose signature has been verified (RFC 7519 section 4.1, RFC 9068 section 4): types of
 * all of them, then issuer, audience, times, lifetime.
 *
 * @throws AuthError `invalid_claims`, `wrong_issuer`, `wrong_audience`, `expired`, `not_yet_valid`,
 * `lifetime_too_long` or `sender_constrained`
 */
export function checkClaims(claims: Claims, rules: ClaimRules, nowMs: number): CheckedClaims {
  const { preset, clockToleranceMs } = rules;
  const issuer = text(claims, 'iss') ?? missing('iss');
  const audience = audiences(claims);
  const expiresAtMs = time(claims, 'exp') ?? missing('exp');
  const notBeforeMs = time(claims, 'nbf');
  // Without `iat` the age of a token is unknown, and a dropped floor could let it back in.
  const issuedAtMs = time(claims, 'iat') ?? missing('iat');
  const subject = text(claims, 'sub');
  const tokenId = text(claims, 'jti');
  const confirmation = ownValue(claims, 'cnf');
  if (confirmation !== undefined && !isObject(confirmation)) throw invalid('cnf is not an object');
  requireClaims(claims, preset);
  const clientId = readClientId(claims, preset);

  if (issuer !== rules.issuer) throw new AuthError('wrong_issuer');
  checkAudience(audience, rules.audiences);
  if (rules.clientIds && !rules.clientIds.includes(clientId)) {
    throw new AuthError('wrong_audience', { privateDetail: 'the client is not one of the accepted ones' });
  }
  // RFC 7519 section 4.1.4: refused at `exp`, not after it.
  const acceptedUntilMs = expiresAtMs + clockToleranceMs;
  const acceptedFromMs = (notBeforeMs ?? -Infinity) - clockToleranceMs;
  if (nowMs >= acceptedUntilMs) throw new AuthError('expired');
  if (nowMs < acceptedFromMs) throw new AuthError('not_yet_valid');
  if (issuedAtMs > nowMs + clockToleranceMs)
    throw new AuthError('not_yet_valid', { privateDetail: 'iat is in the future' });
  if (expiresAtMs - issuedAtMs > rules.maxTokenAgeMs) throw new AuthError('lifetime_too_long');
  // Without its proof such a token is a stolen one, and a confirmation method that is unknown here is not weaker.
  if (confirmation) checkConfirmation(confirmation, rules.confirmations);
  return { clientId, subject, tokenId, expiresAtMs, acceptedFromMs, acceptedUntilMs };
}

function checkAudience(got: readonly string[] | undefined, expected: readonly string[] | false): void {
  if (expected === false) return;
  if (!got?.some((audience) => expected.includes(audience))) throw new AuthError('wrong_audience');
}

/** Every method has to be proven, so every one must be known. */
function checkConfirmation(confirmation: Claims, provable: readonly string[]): void {
  const methods = Object.keys(confirmation);
  if (methods.length === 0 || !methods.every((method) => provable.includes(method))) {
    throw new AuthError('sender_constrained');
  }
  for (const method of methods) if (!text(confirmation, method)) throw invalid(`cnf.${method} is empty`);
}

function requireClaims(claims: Claims, { requiredClaims, fixedClaims, dpopClaims }: Preset): void {
  for (const name of requiredClaims) {
    if (ownValue(claims, name) === undefined) missing(name);
  }
  for (const [name, value] of Object.entries(fixedClaims)) {
    const got = ownValue(claims, name);
    const isOfDpop = got !== undefined && got === ownValue(dpopClaims, name) && isBoundByDpop(claims);
    if (got !== value && !isOfDpop) throw invalid(`${name} is not ${value}`);
  }
}

/** RFC 9449 section 6. */
function isBoundByDpop(claims: Claims): boolean {
  return ownValue(ownValue(claims, 'cnf'), 'jkt') !== undefined;
}

function readClientId(claims: Claims, { clientIdClaims }: Preset): string {
  for (const name of clientIdClaims) {
    const clientId = text(claims, name);
    if (clientId === '') throw invalid('the client id is empty');
    if (clientId !== undefined) return clientId;
  }
  return missing(clientIdClaims.join(' or '));
}

function text(claims: Claims, name: string): string | undefined {
  const value = ownValue(claims, name);
  if (value !== undefined && typeof value !== 'string') throw invalid(`${name} is not a string`);
  return value;
}

/** NumericDate (RFC 7519 section 2) in milliseconds. `JSON.parse` reads 1e400 as Infinity, which is not a date. */
function time(claims: Claims, name: string): number | undefined {
  const value = ownValue(claims, name);
  if (value === undefined) return undefined;
  if (typeof value !== 'number' || !Number.isFinite(value)) throw invalid(`${name} is not a number`);
  return value * 1000;
}

function audiences(claims: Claims): readonly string[] | undefined {
  const value = ownValue(claims, 'aud');
  if (value === undefined) return undefined;
  if (typeof value === 'string') return [value];
  if (Array.isArray(value) && value.every((entry) => typeof entry === 'string')) return value;
  throw invalid('aud is neither a string nor an array of strings');
}

function missing(name: string): never {
  throw invalid(`${name} is missing`);
}

function invalid(privateDetail: string): AuthError {
  return new AuthError('invalid_claims', { privateDetail });
}

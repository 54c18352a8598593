import { AuthError } from '../core/errors';
import { timeHint } from '../core/clock';
import { isObject } from '../core/objects';
import { describe } from '../core/words';
import { SUBJECT_PREFIX, subjectCaller, subjectOf } from '../core/subject-caller';
import type { JsonObject } from '../net/strict-json';
import type { VerificationKey } from './keys/key-set';
import { PRESETS, type Preset } from './presets';

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
  /** Whether `iat` can be missing, where no floor needs the age of a token: then `exp` lies at most `maxTokenAgeMs` ahead. */
  readonly issueTimeCanBeAbsent?: boolean | undefined;
  /**
   * Members of `cnf` (RFC 7800 section 3.1) whose proof of possession is checked after the claims: `jkt` of DPoP (RFC 9449),
   * `x5t#S256` of mutual TLS (RFC 8705); a token with another registered one is refused.
   */
  readonly confirmations: readonly string[];
}

/** The claims of a token, their types checked. */
export interface TypedClaims {
  readonly audiences: readonly string[] | undefined;
  readonly clientId: string;
  readonly subject: string | undefined;
  readonly tokenId: string | undefined;
  readonly issuedAtMs: number | undefined;
  readonly expiresAtMs: number;
  /** First moment at which `nbf` allows the token (RFC 7519 section 4.1.5), clock tolerance included. */
  readonly acceptedFromMs: number;
  /** First moment at which `exp` forbids it (RFC 7519 section 4.1.4), clock tolerance included. */
  readonly acceptedUntilMs: number;
  readonly claims: JsonObject;
}

/** A token between the steps that check its claims. */
export interface ClaimsState {
  readonly claims: JsonObject;
  readonly rules: ClaimRules;
  readonly nowMs: number;
  /** The key that has signed it; absent in an opaque token, and where the key is unknown. */
  readonly key?: VerificationKey | undefined;
  /** Set by `readClaims()`: the other steps rely on it. */
  typed: TypedClaims;
}

/**
 * What shows that a token is an ID token (OpenID Connect Core 1.0 section 2), where `typ` does not; `undefined`: it is
 * not one. A claim with which the issuer itself names an access token, such as Keycloak's `typ`, outweighs `nonce` and
 * `auth_time`. Where no claim names a client, each of these is a sign, and so is `events` of a logout token.
 */
export function signOfIdToken(claims: JsonObject, preset: Preset): string | undefined {
  const { fixedClaims, clientIdClaims, clientCanBeSubject } = preset;
  // A hash of what was issued with it: only an ID token has one.
  const { at_hash: ofToken, c_hash: ofCode, nonce, auth_time: authenticatedAt, scope, scp } = claims;
  if (ofToken !== undefined) return 'at_hash';
  if (ofCode !== undefined) return 'c_hash';
  const isOfSubject = clientCanBeSubject && clientIdClaims.every((name) => claims[name] === undefined);
  if (isOfSubject) return ['nonce', 'auth_time', 'events'].find((name) => claims[name] !== undefined);
  if (nonce === undefined && authenticatedAt === undefined) return undefined;
  if (scope !== undefined || scp !== undefined || !isForItsClient(claims)) return undefined;
  if (fixedClaims.some(([name, ...values]) => values.some((value) => claims[name] === value))) return undefined;
  return `${nonce === undefined ? 'auth_time' : 'nonce'}, no scopes, and aud is its own client`;
}

/** Whether a token is for no API, but for the client that it was issued to; `also`: other claims that may name it. */
export function isForItsClient(claims: JsonObject, also: readonly string[] = []): boolean {
  const { aud } = claims;
  const audience: unknown = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud;
  const names = [...PRESETS.jwt.clientIdClaims, ...also];
  return typeof audience === 'string' && names.some((name) => claims[name] === audience);
}

const TIMES = ['exp', 'nbf', 'iat'];

/** Checks the types of all claims (RFC 7519 section 4.1), and that those are there which the preset needs (RFC 9068 section 2.2). */
export function readClaims(state: ClaimsState): void {
  const { claims, rules } = state;
  const { iss = missing('iss'), sub: subject, jti: tokenId, cnf } = claims;
  if (typeof iss !== 'string') throw invalid('iss is not a string');
  if (subject !== undefined && typeof subject !== 'string') throw invalid('sub is not a string');
  if (tokenId !== undefined && typeof tokenId !== 'string') throw invalid('jti is not a string');
  if (cnf !== undefined && !isObject(cnf)) throw invalid('cnf is not an object');
  for (const name of TIMES) {
    // `JSON.parse` reads 1e400 as Infinity, which is not a date (RFC 7519 section 2).
    if (claims[name] !== undefined && !Number.isFinite(claims[name])) throw invalid(`${name} is not a number`);
  }
  const { exp = missing('exp'), nbf, iat } = claims as Partial<Record<string, number>>;
  // Without `iat` the age of a token is unknown, and a dropped floor could let it back in.
  if (iat === undefined && !rules.issueTimeCanBeAbsent) missing('iat');
  const audiences = readAudiences(claims);
  requireClaims(claims, rules.preset);
  const clientId = readClientId(claims, rules.preset);
  state.typed = {
    audiences,
    clientId,
    subject,
    tokenId,
    issuedAtMs: iat === undefined ? undefined : iat * 1000,
    expiresAtMs: exp * 1000,
    acceptedFromMs: (nbf ?? -Infinity) * 1000 - rules.clockToleranceMs,
    acceptedUntilMs: exp * 1000 + rules.clockToleranceMs,
    claims,
  };
}

export function checkIssuer({ claims: { iss }, rules: { issuer } }: ClaimsState): void {
  if (iss !== issuer) throw new AuthError('wrong_issuer', unlike('iss', iss, issuer));
}

export function checkAudience({ typed: { audiences, clientId }, rules }: ClaimsState): void {
  const { audiences: expected, clientIds } = rules;
  if (expected !== false && !audiences?.some((audience) => expected.includes(audience))) {
    throw new AuthError('wrong_audience', unlike('aud', audiences?.join(' '), expected.join(' or ')));
  }
  if (clientIds && !clientIds.includes(clientId)) {
    throw new AuthError('wrong_audience', { privateDetail: 'the client is not one of the accepted ones' });
  }
}

export function checkTimes({ typed, rules: { clockToleranceMs }, nowMs }: ClaimsState): void {
  const { expiresAtMs, issuedAtMs = nowMs, acceptedFromMs, acceptedUntilMs } = typed;
  const notBeforeMs = acceptedFromMs + clockToleranceMs;
  if (nowMs >= acceptedUntilMs) throw atAnotherTime('expired', 'exp', expiresAtMs - nowMs);
  if (nowMs < acceptedFromMs) throw atAnotherTime('not_yet_valid', 'nbf', notBeforeMs - nowMs);
  if (issuedAtMs > nowMs + clockToleranceMs) throw atAnotherTime('not_yet_valid', 'iat', issuedAtMs - nowMs);
}

export function checkLifetime({ typed, rules: { maxTokenAgeMs }, nowMs }: ClaimsState): void {
  const { issuedAtMs, expiresAtMs } = typed;
  const lifetimeMs = expiresAtMs - (issuedAtMs ?? nowMs);
  if (lifetimeMs <= maxTokenAgeMs) return;
  const seconds = Math.ceil(lifetimeMs / 1000);
  const what = issuedAtMs === undefined ? 'exp - now' : 'exp - iat';
  const privateDetail = `${what} is ${seconds} s, at most ${maxTokenAgeMs / 1000} s are accepted${timeHint(seconds)}`;
  throw new AuthError('lifetime_too_long', { privateDetail });
}

function unlike(name: string, got: unknown, expected: string): { readonly privateDetail: string } {
  const what = got === undefined ? 'missing' : describe(got, 200);
  return { privateDetail: `${name} is ${what}, expected ${describe(expected, 200)}` };
}

function atAnotherTime(reason: 'expired' | 'not_yet_valid', name: string, inMs: number): AuthError {
  const seconds = Math.ceil(Math.abs(inMs) / 1000);
  const when = inMs > 0 ? `is ${seconds} s ahead` : `was ${seconds} s ago`;
  return new AuthError(reason, { privateDetail: `${name} ${when}${timeHint(seconds)}` });
}

const CONFIRMATIONS = ['jwk', 'jwe', 'jku', 'kid', 'jkt', 'x5t#S256', 'osc'];
/** The confirmation methods that IANA has registered (RFC 7800 section 6.2), understood here whether a gate can check their proof or not. */
export const REGISTERED_CONFIRMATIONS: ReadonlySet<string> = new Set(CONFIRMATIONS);

/**
 * Without its proof a bound token is a stolen one, so every registered method has to be proven. Any other member is not understood
 * and is ignored (RFC 7800 section 3.1), but does not make a bearer token of a bound one.
 */
export function checkConfirmation({ claims, rules: { confirmations: provable } }: ClaimsState): void {
  const confirmation = claims['cnf'] as JsonObject | undefined;
  if (!confirmation) return;
  const members = Object.keys(confirmation);
  const methods = members.filter((name) => provable.includes(name) || REGISTERED_CONFIRMATIONS.has(name));
  const unproven = methods.find((name) => !provable.includes(name)) ?? (methods.length === 0 ? members[0] : undefined);
  if (unproven !== undefined || methods.length === 0) {
    const which = unproven === undefined ? 'cnf has no member' : `cnf member ${describe(unproven)} is not proven`;
    const privateDetail = `${which}: the option possession lists no proof for it`;
    throw new AuthError('sender_constrained', { privateDetail });
  }
  for (const method of methods) {
    if (typeof confirmation[method] !== 'string') throw invalid(`${method} is not a string`);
    if (confirmation[method] === '') throw invalid(`cnf.${method} is empty`);
  }
}

/** Such a claim tells access tokens from others, and only one vendor sets it. */
const NOT_THIS_PRESET = 'it is not an access token, or the preset is of another vendor';

function requireClaims(claims: JsonObject, { requiredClaims, fixedClaims }: Preset): void {
  for (const name of requiredClaims) {
    if (claims[name] === undefined) missing(name);
  }
  for (const [name, value, ofDpop] of fixedClaims) {
    const got = claims[name];
    // RFC 9449 section 6.
    const isOfDpop = got !== undefined && got === ofDpop && isBoundByDpop(claims);
    if (got === value || isOfDpop) continue;
    const what = got === undefined ? 'missing' : describe(got, 200);
    throw invalid(`claim ${name} is ${what}, expected "${value}"; ${NOT_THIS_PRESET}`);
  }
}

/** A key of a tenant verifies no token that names another tenant, or none. */
export function checkTenant({ claims, rules, key }: ClaimsState): void {
  const { tenantClaim = '' } = rules.preset;
  const { [tenantClaim]: got } = claims;
  if (key?.tenant === undefined || got === key.tenant) return;
  const what = got === undefined ? 'missing' : describe(got, 50);
  throw invalid(`${tenantClaim} is ${what}, but its key is for tenant ${key.tenant}`);
}

/** Whether a token is bound to a key by DPoP (RFC 9449 section 6.1). */
export function isBoundByDpop({ cnf }: JsonObject): boolean {
  return isObject(cnf) && cnf['jkt'] !== undefined;
}

function readClientId(claims: JsonObject, { clientIdClaims, clientCanBeSubject }: Preset): string {
  let first: string | undefined;
  for (const name of clientIdClaims) {
    const id = claims[name];
    if (id !== undefined) first ??= name;
    if (typeof id !== 'string' || !id.startsWith(SUBJECT_PREFIX)) continue;
    throw invalid(`${name} begins with "sub:", as the names of callers without a client id do`);
  }
  if (first !== undefined) {
    const id = claims[first];
    if (typeof id !== 'string') throw invalid(`${first} is not a string`);
    if (id === '') throw invalid('the client id is empty');
    return id;
  }
  const names = clientIdClaims.join(' or ');
  if (!clientCanBeSubject) return missing(names);
  return subjectCaller((claims['sub'] as string | undefined) || missing(`${names} or sub`));
}

/** The client of a token whose claims may be refused. */
export function clientNamedIn(claims: JsonObject, { clientIdClaims, clientCanBeSubject }: Preset): string | undefined {
  const ids = clientIdClaims.map((name) => claims[name]);
  const { sub } = claims;
  if (clientCanBeSubject && typeof sub === 'string' && ids.every((id) => id === undefined)) return subjectCaller(sub);
  return ids.find((id) => typeof id === 'string' && subjectOf(id) === undefined) as string | undefined;
}

function readAudiences(claims: JsonObject): readonly string[] | undefined {
  const value = claims['aud'];
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

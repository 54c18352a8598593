import { AuthError } from '../core/errors';
import { timeHint, type Clock } from '../core/clock';
import { isObject } from '../core/objects';
import { describe } from '../core/words';
import { SUBJECT_PREFIX, subjectCaller, subjectOf } from '../core/subject-caller';
import type { Caller } from './fair-queue';
import { checkHeader, type UnverifiedToken } from './jws';
import type { KeySource, VerificationKey } from './keys/key-set';
import { signOfIdToken, type Preset } from './presets';
import type { Algorithm, SignatureVerifier } from './signature';
import { freezeJson, type JsonObject } from '../net/strict-json';

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

/** A token that passed every check but its generation. */
interface VerifiedToken {
  readonly issuer: string;
  readonly clientId: string;
  readonly subject: string | undefined;
  readonly tokenId: string | undefined;
  readonly expiresAtMs: number;
  /** First moment at which `nbf` allows the token (RFC 7519 section 4.1.5), clock tolerance included. */
  readonly acceptedFromMs: number;
  /** First moment at which `exp` forbids it, clock tolerance included. */
  readonly acceptedUntilMs: number;
  readonly claims: JsonObject;
}

/** Checks the claims of a token, whether they were signed with a key or returned by an introspection endpoint. */
export type ClaimsCheck = (claims: JsonObject, key?: VerificationKey) => VerifiedToken;

/** Makes the check of the claims of one issuer's tokens: that of `checkClaims()`. */
export function claimsCheck(rules: ClaimRules, clock: Clock): ClaimsCheck {
  return (claims, key) => {
    const verified = checkClaims(claims, rules, clock());
    if (key?.tenant !== undefined) checkTenant(claims, rules.preset, key.tenant);
    return verified;
  };
}

/** Verifies the tokens of one issuer, in two steps: only the result of the first may be cached. */
export class TokenVerifier {
  readonly #options: TokenVerifierOptions;
  readonly #accepted: Parameters<typeof checkHeader>[1];

  constructor(options: TokenVerifierOptions) {
    this.#options = options;
    this.#accepted = { algorithms: new Set(options.algorithms), types: new Set(options.rules.preset.types) };
  }

  /**
   * Checks header, type, key and signature (RFC 7515 section 5.2). Throws, or rejects with, the AuthError of the first check that
   * fails. The claims of a token with an unknown key are checked first: a token that no key can make valid must not cause a fetch.
   *
   * @returns the key that has signed the token
   */
  verifySignature(token: UnverifiedToken, caller?: Caller): Promise<VerificationKey> {
    const { rules, keys, signatures, clock } = this.#options;
    const header = checkHeader(token.header, this.#accepted, token.claims['iss']);
    refuseIdToken(token.claims, rules.preset);
    const verify = (key: VerificationKey) => signatures.verify(token, key, header.algorithm, caller);
    const key = keys.find(header, () => {
      checkBeforeAsking(() => checkClaims(token.claims, rules, clock()));
      return token.claims['iat'] as number;
    });
    return key instanceof Promise ? key.then(verify) : verify(key);
  }

  /** Rejects unless a known key has signed a token, of whatever type. For advice: it decides nothing, and asks no issuer for a key. */
  async requireSigned(token: UnverifiedToken): Promise<void> {
    const { keys, signatures } = this.#options;
    const types = { has: () => true, [Symbol.iterator]: () => [].values() };
    const header = checkHeader(token.header, { ...this.#accepted, types });
    const key = await keys.find(header, () => {
      throw KEY_UNKNOWN;
    });
    await signatures.verify(token, key, header.algorithm);
  }
}

/** An ID token is for the client that reads it: as an access token it would grant that client the API. */
function refuseIdToken(claims: JsonObject, preset: Preset): void {
  const sign = signOfIdToken(claims, preset);
  const kind = sign === 'events' ? 'a logout token' : 'an ID token';
  if (sign !== undefined) throw new AuthError('wrong_type', { privateDetail: `${kind} (${sign})` });
}

interface TokenVerifierOptions {
  readonly rules: ClaimRules;
  readonly algorithms: readonly Algorithm[];
  readonly keys: KeySource;
  readonly signatures: SignatureVerifier;
  readonly clock: Clock;
}

/** The cause of a refusal that no signature vouches for. */
const KEY_UNKNOWN = new AuthError('unknown_key');

/** Marks what `check` throws: `isUnverified()` is true for it. */
function checkBeforeAsking(check: () => unknown): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof AuthError)) throw error;
    const privateDetail = [error.privateDetail, 'its key is unknown, and was not asked for'].filter(Boolean).join('; ');
    throw new AuthError(error.reason, { privateDetail, cause: KEY_UNKNOWN });
  }
}

/** Whether claims were refused before the signature could be verified, because the key is unknown. */
export function isUnverified(refusal: AuthError): boolean {
  // No parameter pattern: declarations repeat it, and the Error of ES2017 has no `cause`.
  return refusal.cause instanceof AuthError && refusal.cause.reason === KEY_UNKNOWN.reason;
}

/**
 * Checks the claims of a token whose signature has been verified (RFC 7519 section 4.1, RFC 9068 section 4): types of
 * all of them, then issuer, audience, times, lifetime.
 *
 * @throws AuthError `invalid_claims`, `wrong_issuer`, `wrong_audience`, `expired`, `not_yet_valid`,
 * `lifetime_too_long` or `sender_constrained`
 */
function checkClaims(claims: JsonObject, rules: ClaimRules, nowMs: number): VerifiedToken {
  const { preset, clockToleranceMs } = rules;
  const issuer = optionalText(claims, 'iss') ?? missing('iss');
  const audience = audiences(claims);
  const expiresAtMs = time(claims, 'exp') ?? missing('exp');
  const notBeforeMs = time(claims, 'nbf');
  // Without `iat` the age of a token is unknown, and a dropped floor could let it back in.
  const issuedAtMs = time(claims, 'iat') ?? (rules.issueTimeCanBeAbsent ? undefined : missing('iat'));
  const subject = optionalText(claims, 'sub');
  const tokenId = optionalText(claims, 'jti');
  const { cnf: confirmation } = claims;
  if (confirmation !== undefined && !isObject(confirmation)) throw invalid('cnf is not an object');
  requireClaims(claims, preset);
  const clientId = readClientId(claims, preset);

  if (issuer !== rules.issuer) throw new AuthError('wrong_issuer', unlike('iss', issuer, rules.issuer));
  checkAudience(audience, rules.audiences);
  if (rules.clientIds && !rules.clientIds.includes(clientId)) {
    throw new AuthError('wrong_audience', { privateDetail: 'the client is not one of the accepted ones' });
  }
  // RFC 7519 section 4.1.4: refused at `exp`, not after it.
  const acceptedUntilMs = expiresAtMs + clockToleranceMs;
  const acceptedFromMs = (notBeforeMs ?? -Infinity) - clockToleranceMs;
  if (nowMs >= acceptedUntilMs) throw atAnotherTime('expired', 'exp', expiresAtMs - nowMs);
  if (nowMs < acceptedFromMs) throw atAnotherTime('not_yet_valid', 'nbf', (notBeforeMs ?? 0) - nowMs);
  const sinceMs = issuedAtMs ?? nowMs;
  if (sinceMs > nowMs + clockToleranceMs) throw atAnotherTime('not_yet_valid', 'iat', sinceMs - nowMs);
  if (expiresAtMs - sinceMs > rules.maxTokenAgeMs) {
    throw tooLong(issuedAtMs === undefined ? 'exp - now' : 'exp - iat', expiresAtMs - sinceMs, rules.maxTokenAgeMs);
  }
  // Without its proof such a token is a stolen one, and a confirmation method that is unknown here is not weaker.
  if (confirmation) checkConfirmation(confirmation, rules.confirmations);
  freezeJson(claims);
  return { issuer, clientId, subject, tokenId, expiresAtMs, acceptedFromMs, acceptedUntilMs, claims };
}

function unlike(name: string, got: string | undefined, expected: string): { readonly privateDetail: string } {
  const what = got === undefined ? 'missing' : describe(got, 200);
  return { privateDetail: `${name} is ${what}, expected ${describe(expected, 200)}` };
}

function atAnotherTime(reason: 'expired' | 'not_yet_valid', name: string, inMs: number): AuthError {
  const seconds = Math.ceil(Math.abs(inMs) / 1000);
  const when = inMs > 0 ? `is ${seconds} s ahead` : `was ${seconds} s ago`;
  return new AuthError(reason, { privateDetail: `${name} ${when}${timeHint(seconds)}` });
}

function tooLong(what: string, lifetimeMs: number, maxMs: number): AuthError {
  const seconds = Math.ceil(lifetimeMs / 1000);
  const privateDetail = `${what} is ${seconds} s, at most ${maxMs / 1000} s are accepted${timeHint(seconds)}`;
  return new AuthError('lifetime_too_long', { privateDetail });
}

function checkAudience(got: readonly string[] | undefined, expected: readonly string[] | false): void {
  if (expected === false) return;
  if (!got?.some((audience) => expected.includes(audience))) {
    throw new AuthError('wrong_audience', unlike('aud', got?.join(' '), expected.join(' or ')));
  }
}

const CONFIRMATIONS = ['jwk', 'jwe', 'jku', 'kid', 'jkt', 'x5t#S256', 'osc'];
/** The confirmation methods that IANA has registered (RFC 7800 section 6.2), understood here whether a gate can check their proof or not. */
export const REGISTERED_CONFIRMATIONS: ReadonlySet<string> = new Set(CONFIRMATIONS);

/**
 * Every registered method has to be proven. Any other member is not understood and is ignored (RFC 7800 section 3.1), but does not
 * make a bearer token of a bound one.
 */
function checkConfirmation(confirmation: JsonObject, provable: readonly string[]): void {
  const members = Object.keys(confirmation);
  const methods = members.filter((name) => provable.includes(name) || REGISTERED_CONFIRMATIONS.has(name));
  const unproven = methods.find((name) => !provable.includes(name)) ?? (methods.length === 0 ? members[0] : undefined);
  if (unproven !== undefined || methods.length === 0) {
    const which = unproven === undefined ? 'cnf has no member' : `cnf member ${describe(unproven)} is not proven`;
    const privateDetail = `${which}: the option possession lists no proof for it`;
    throw new AuthError('sender_constrained', { privateDetail });
  }
  for (const method of methods) if (!optionalText(confirmation, method)) throw invalid(`cnf.${method} is empty`);
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
function checkTenant(claims: JsonObject, { tenantClaim = '' }: Preset, tenant: string): void {
  const { [tenantClaim]: got } = claims;
  if (got === tenant) return;
  throw invalid(
    `${tenantClaim} is ${got === undefined ? 'missing' : describe(got, 50)}, but its key is for tenant ${tenant}`,
  );
}

/** Whether a token is bound to a key by DPoP (RFC 9449 section 6.1). */
export function isBoundByDpop({ cnf }: JsonObject): boolean {
  return isObject(cnf) && cnf['jkt'] !== undefined;
}

function readClientId(claims: JsonObject, { clientIdClaims, clientCanBeSubject }: Preset): string {
  for (const name of clientIdClaims) {
    const id = claims[name];
    if (typeof id !== 'string' || !id.startsWith(SUBJECT_PREFIX)) continue;
    throw invalid(`${name} begins with "sub:", as the names of callers without a client id do`);
  }
  for (const name of clientIdClaims) {
    const clientId = optionalText(claims, name);
    if (clientId === '') throw invalid('the client id is empty');
    if (clientId !== undefined) return clientId;
  }
  const names = clientIdClaims.join(' or ');
  if (!clientCanBeSubject) return missing(names);
  return subjectCaller(optionalText(claims, 'sub') || missing(`${names} or sub`));
}

/** The client of a token whose claims may be refused. */
export function clientNamedIn(claims: JsonObject, { clientIdClaims, clientCanBeSubject }: Preset): string | undefined {
  const ids = clientIdClaims.map((name) => claims[name]);
  const { sub } = claims;
  if (clientCanBeSubject && typeof sub === 'string' && ids.every((id) => id === undefined)) return subjectCaller(sub);
  return ids.find((id) => typeof id === 'string' && subjectOf(id) === undefined) as string | undefined;
}

function optionalText(claims: JsonObject, name: string): string | undefined {
  const value = claims[name];
  if (value !== undefined && typeof value !== 'string') throw invalid(`${name} is not a string`);
  return value;
}

/** NumericDate (RFC 7519 section 2) in milliseconds. `JSON.parse` reads 1e400 as Infinity, which is not a date. */
function time(claims: JsonObject, name: string): number | undefined {
  const value = claims[name];
  if (value === undefined) return undefined;
  if (typeof value !== 'number' || !Number.isFinite(value)) throw invalid(`${name} is not a number`);
  return value * 1000;
}

function audiences(claims: JsonObject): readonly string[] | undefined {
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

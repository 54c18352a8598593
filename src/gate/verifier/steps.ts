import { AuthError } from '../core/errors';
import { describe } from '../core/words';
import { freezeJson, type JsonObject } from '../net/strict-json';
import * as checks from '../token/claims';
import type { Caller } from '../token/fair-queue';
import { checkHeader, parseToken, type UnverifiedHeader, type UnverifiedToken } from '../token/jws';
import type { VerificationKey } from '../token/keys/key-set';
import type { ClaimsPolicy, IssuerContext } from './issuer';

/** A JWT on its way to its signature: each step sets what the next ones rely on. */
export interface JwtState {
  readonly raw: string;
  readonly issuers: readonly IssuerContext[];
  readonly caller: Caller | undefined;
  token: UnverifiedToken;
  context: IssuerContext;
  header: UnverifiedHeader;
  key: VerificationKey;
}

/**
 * The steps of a JWT in their order, as SECURITY.md explains them. The first that fails decides: it throws, or rejects with, the
 * AuthError of the refusal.
 */
export const STEPS = {
  /** Has the issuer signed it? Made once for a token that is cached. */
  signature: {
    structure: (jwt: JwtState): void => void (jwt.token = parseToken(jwt.raw)),
    'known issuer': selectIssuer,
    header: (jwt: JwtState): void =>
      void (jwt.header = checkHeader(jwt.token.header, jwt.context.accepted, jwt.token.claims['iss'])),
    kind: refuseIdToken,
    key: findKey,
    signature: ({ token, context, header, key, caller }: JwtState): Promise<unknown> =>
      context.signatures.verify(token, key, header.algorithm, caller),
  },
  /** Are its claims right? An opaque token begins here; an unknown key is asked for only where they are. */
  claims: {
    'claim types': checks.readClaims,
    issuer: checks.checkIssuer,
    audience: checks.checkAudience,
    times: checks.checkTimes,
    lifetime: checks.checkLifetime,
    confirmation: checks.checkConfirmation,
    tenant: checks.checkTenant,
  },
  /** Is its credential unchanged, and what may it do? Only a token that passed every other check may raise a floor. */
  grant: {
    generation: ({ generations }: IssuerContext, { clientId, claims }: checks.TypedClaims): number | undefined =>
      generations?.verify(clientId, claims),
    scopes: ({ readScopes }: ClaimsPolicy, { claims }: checks.TypedClaims): readonly string[] =>
      Object.freeze(readScopes(claims)),
  },
};

export const SIGNATURE_STEPS: readonly ((jwt: JwtState) => unknown)[] = Object.values(STEPS.signature);
const CLAIM_STEPS = Object.values(STEPS.claims);

/** Checks the claims of a token. Throws the AuthError of the first check that fails. */
export function checkClaims(
  claims: JsonObject,
  rules: checks.ClaimRules,
  nowMs: number,
  key?: VerificationKey,
): checks.TypedClaims {
  // The first step sets the rest.
  const state = { claims, rules, nowMs, key } as checks.ClaimsState;
  for (let at = 0; at < CLAIM_STEPS.length; at++) CLAIM_STEPS[at]!(state);
  freezeJson(claims);
  return state.typed;
}

/** With one issuer its keys decide, so that the signature is checked before any claim; with several, `iss` selects. */
function selectIssuer(jwt: JwtState): void {
  const { issuers, token } = jwt;
  const { iss } = token.claims;
  const context = issuers.length === 1 ? issuers[0] : issuers.find(({ issuer }) => issuer === iss);
  if (!context)
    throw new AuthError('wrong_issuer', { privateDetail: `no issuer of this gate is ${describe(iss, 200)}` });
  jwt.context = context;
}

/** An ID token is for the client that reads it: as an access token it would grant that client the API. */
function refuseIdToken({ token, context }: JwtState): void {
  const sign = checks.signOfIdToken(token.claims, context.policy.rules.preset);
  const kind = sign === 'events' ? 'a logout token' : 'an ID token';
  if (sign !== undefined) throw new AuthError('wrong_type', { privateDetail: `${kind} (${sign})` });
}

/** A token with an unknown key causes a fetch only if a key could make it valid. */
function findKey(jwt: JwtState): Promise<void> | undefined {
  const { token, context, header } = jwt;
  const { claims } = token;
  const key = context.keys.find(header, () => {
    try {
      checkClaims(claims, context.policy.rules, context.clock());
      return claims['iat'] as number;
    } catch (error) {
      if (!(error instanceof AuthError)) throw error;
      const details = [error.privateDetail, 'its key is unknown, and was not asked for'];
      throw new AuthError(error.reason, { privateDetail: details.filter(Boolean).join('; '), cause: KEY_UNKNOWN });
    }
  });
  if (key instanceof Promise) return key.then((found) => void (jwt.key = found));
  jwt.key = key;
  return undefined;
}

/** Whether a known key has signed a token, of whatever type. For advice: it decides nothing, and asks no issuer for a key. */
export async function isSigned(raw: string, issuers: readonly IssuerContext[]): Promise<boolean> {
  const jwt = { raw, issuers } as JwtState;
  try {
    STEPS.signature.structure(jwt);
    selectIssuer(jwt);
    const { token, context } = jwt;
    const header = checkHeader(token.header, { ...context.accepted, types: ANY_TYPE });
    const key = await context.keys.find(header, () => {
      throw KEY_UNKNOWN;
    });
    await context.signatures.verify(token, key, header.algorithm);
    return true;
  } catch {
    return false;
  }
}

const ANY_TYPE = { has: () => true, [Symbol.iterator]: () => [].values() };

/** The cause of a refusal that no signature vouches for. */
const KEY_UNKNOWN = new AuthError('unknown_key');

/** Whether claims were refused before the signature could be verified, because the key is unknown. */
export function isUnverified(refusal: AuthError): boolean {
  // No parameter pattern: declarations repeat it, and the Error of ES2017 has no `cause`.
  return refusal.cause instanceof AuthError && refusal.cause.reason === KEY_UNKNOWN.reason;
}

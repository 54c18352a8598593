import type { Clock } from '../core/clock';
import type { Algorithm } from './algorithms';
import { checkClaims, checkTimes } from './claims';
import type { ClaimRules } from './claims';
import { freezeDeep } from './freeze-deep';
import type { VerificationKey } from './keys/jwk';
import { checkHeader } from './jws';
import type { UnverifiedHeader, UnverifiedToken } from './jws';
import type { KeySource } from './keys/key-source';
import { readScopes } from './scopes';
import { verifySignature } from './signature';
import type { VerifiedToken } from './verified-token';

/** What the tokens of one issuer are verified against. */
export interface VerifierOptions {
  readonly rules: ClaimRules;
  readonly algorithms: readonly Algorithm[];
  readonly keys: KeySource;
  readonly clock: Clock;
}

/** Checks of a token on its own, in the order in which they are made. */
export type TokenCheck = 'structure' | 'header' | 'key' | 'signature' | 'claims';

/** A token whose signature is good; nothing that it says has been checked. */
export interface SignedToken {
  readonly claims: Readonly<Record<string, unknown>>;
  readonly key: VerificationKey;
}

/** Verifies the tokens of one issuer, in two steps: only the outcome of the first may be remembered. */
export interface TokenVerifier {
  /**
   * Checks header, key and signature, and tells `passed` after each; at once when the key is at hand.
   *
   * @throws AuthError of the first check that fails
   */
  verifySignature(token: UnverifiedToken, passed: (check: TokenCheck) => void): SignedToken | Promise<SignedToken>;
  /**
   * Checks the claims.
   *
   * @throws AuthError `invalid_claims`, `wrong_issuer`, `wrong_audience`, `expired`, `not_yet_valid`,
   *   `lifetime_too_long` or `sender_constrained`
   */
  verifyClaims(token: SignedToken): VerifiedToken;
  /** Whether a signature that was good still is: its key is in the set. */
  stillSigned(token: SignedToken): boolean;
  /**
   * Checks again what changes while a token is remembered: its times.
   *
   * @throws AuthError `expired` or `not_yet_valid`
   */
  checkTimes(token: VerifiedToken): void;
}

/** Makes the verifier of one issuer. */
export function tokenVerifier({ rules, algorithms, keys, clock }: VerifierOptions): TokenVerifier {
  const { preset, issuer, clockToleranceMs } = rules;
  const accepted = { algorithms: new Set(algorithms), types: new Set(preset.types) };

  function withKey(
    token: UnverifiedToken,
    { algorithm }: UnverifiedHeader,
    key: VerificationKey,
    passed: (check: TokenCheck) => void,
  ): SignedToken {
    passed('key');
    verifySignature(token, key.key, algorithm);
    passed('signature');
    return { claims: token.claims, key };
  }

  return {
    verifySignature(token, passed) {
      passed('structure');
      const header = checkHeader(token.header, accepted);
      passed('header');
      const key = keys.find(header);
      if (key instanceof Promise) return key.then((found) => withKey(token, header, found, passed));
      return withKey(token, header, key, passed);
    },
    verifyClaims(token) {
      const { clientId, subject, tokenId, expiresAtMs, notBeforeMs } = checkClaims(token.claims, rules, clock());
      const scopes = Object.freeze(readScopes(token.claims, preset.scopeClaims));
      const claims = freezeDeep(token.claims);
      return { clientId, subject, tokenId, expiresAtMs, notBeforeMs, issuer, scopes, claims };
    },
    stillSigned: ({ key }) => keys.has(key),
    checkTimes: (token) => checkTimes(token, clock(), clockToleranceMs),
  };
}

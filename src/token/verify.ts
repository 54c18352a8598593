import type { Clock } from '../core/clock';
import type { Algorithm } from './algorithms';
import { checkClaims, checkTimes } from './claims';
import type { ClaimRules } from './claims';
import { freezeDeep } from './freeze-deep';
import type { VerificationKey } from './jwk';
import { checkHeader } from './jws';
import type { UnverifiedHeader, UnverifiedToken } from './jws';
import type { KeySource } from './key-source';
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

/** Verifies the tokens of one issuer. */
export interface TokenVerifier {
  /**
   * Runs the checks in order and tells `passed` after each; at once when the key is at hand.
   *
   * @throws AuthError of the first check that fails
   */
  verify(token: UnverifiedToken, passed?: (check: TokenCheck) => void): VerifiedToken | Promise<VerifiedToken>;
  /**
   * Checks again what can change while a verdict is remembered: times, and that its key is still in the set.
   * `false` when the key is gone and the token has to be verified anew.
   *
   * @throws AuthError `expired` or `not_yet_valid`
   */
  stillValid(token: VerifiedToken): boolean;
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
  ): VerifiedToken {
    passed('key');
    verifySignature(token, key.key, algorithm);
    passed('signature');
    const { clientId, subject, tokenId, expiresAtMs, notBeforeMs } = checkClaims(token.claims, rules, clock());
    passed('claims');
    const scopes = Object.freeze(readScopes(token.claims, preset.scopeClaims));
    const claims = freezeDeep(token.claims);
    return { clientId, subject, tokenId, expiresAtMs, notBeforeMs, issuer, scopes, claims, key };
  }

  return {
    verify(token, passed = ignore) {
      passed('structure');
      const header = checkHeader(token.header, accepted);
      passed('header');
      const key = keys.find(header);
      if (key instanceof Promise) return key.then((found) => withKey(token, header, found, passed));
      return withKey(token, header, key, passed);
    },
    stillValid(token) {
      checkTimes(token, clock(), clockToleranceMs);
      return keys.has(token.key);
    },
  };
}

function ignore(): void {}

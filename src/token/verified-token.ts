import type { CheckedClaims } from './claims';
import type { VerificationKey } from './jwk';

/** A token that passed every check of its own; generation and scopes are not looked at yet. */
export interface VerifiedToken extends CheckedClaims {
  readonly issuer: string;
  readonly scopes: readonly string[];
  readonly claims: Readonly<Record<string, unknown>>;
  /** The key that the signature was verified with: a remembered verdict ends when its key leaves the set. */
  readonly key: VerificationKey;
}

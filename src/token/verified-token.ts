import type { CheckedClaims } from './claims';

/** A token that passed every check of its own; generation and scopes are not looked at yet. */
export interface VerifiedToken extends CheckedClaims {
  readonly issuer: string;
  readonly scopes: readonly string[];
  readonly claims: Readonly<Record<string, unknown>>;
}

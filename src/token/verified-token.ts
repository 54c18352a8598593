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

/**
 * Freezes a JSON value through and through: one verdict is shared by all requests that carry its token. Walks with a
 * list of its own, because a payload may be nested deeper than the stack.
 */
export function freezeDeep<Value>(value: Value): Value {
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next !== 'object' || next === null) continue;
    open.push(...(Object.values(Object.freeze(next)) as unknown[]));
  }
  return value;
}

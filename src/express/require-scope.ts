import { AuthError } from '../core/auth-error';
import { describe } from '../core/options';
import { isGranted, isScopeToken } from '../token/scopes';
import { makeGuard } from './guard';
import type { Guard, ScopeRequirement } from './guard';

/**
 * Makes the guard of one route: allows a token with all of the scopes, or with any one of them for
 * `{ anyOf: [...] }`; else 403 `insufficient_scope` (RFC 6750 section 3.1). Without `authenticate()` before it, it
 * allows nothing.
 *
 * @throws TypeError when no scope is given, or one is not a scope-token (RFC 6749 section 3.3)
 *
 * @example
 * ```ts
 * import { Router } from 'express';
 * import { requireScope } from 'tillgate';
 *
 * const orders = Router();
 * orders.get('/', requireScope('orders:read'), (req, res) => res.json([]));
 * orders.post('/:id/cancel', requireScope('orders:cancel', 'orders:write'), (req, res) => res.sendStatus(204));
 * ```
 */
export function requireScope(...scopes: readonly [string, ...string[]]): Guard;
export function requireScope(scopes: readonly string[] | { readonly anyOf: readonly string[] }): Guard;
export function requireScope(...args: readonly unknown[]): Guard {
  const requirement = readRequirement(args);
  const requiredScopes = scopesOf(requirement);
  return makeGuard('requireScope', requirement, ({ scopes }) =>
    satisfies(scopes, requirement) ? undefined : new AuthError('insufficient_scope', { requiredScopes }),
  );
}

/** Whether granted scopes are enough. */
export function satisfies(granted: readonly string[], requirement: ScopeRequirement): boolean {
  const has = (scope: string): boolean => isGranted(granted, scope);
  return isAnyOf(requirement) ? requirement.anyOf.some(has) : requirement.allOf.every(has);
}

/** The scopes that a requirement names, as the challenge's `scope` lists them. */
function scopesOf(requirement: ScopeRequirement): readonly string[] {
  return isAnyOf(requirement) ? requirement.anyOf : requirement.allOf;
}

/** Not `'anyOf' in requirement`: a polluted prototype would make every requirement one of no scopes. */
function isAnyOf(requirement: ScopeRequirement): requirement is { readonly anyOf: readonly string[] } {
  return Object.hasOwn(requirement, 'anyOf');
}

/**
 * Reads what `requireScope()` accepts as arguments.
 *
 * @throws TypeError
 */
export function readRequirement(args: readonly unknown[]): ScopeRequirement {
  const [first] = args;
  if (args.length === 1 && Array.isArray(first)) return { allOf: readScopeList(first) };
  if (args.length === 1 && typeof first === 'object' && first !== null) {
    if (Object.keys(first).join() !== 'anyOf') throw new TypeError('requireScope(): expected { anyOf: [...] }');
    return { anyOf: readScopeList((first as { anyOf: unknown }).anyOf) };
  }
  return { allOf: readScopeList(args) };
}

function readScopeList(scopes: unknown): readonly string[] {
  if (!Array.isArray(scopes) || scopes.length === 0) {
    throw new TypeError(`requireScope(): expected at least one scope, got ${describe(scopes)}`);
  }
  for (const scope of scopes) {
    if (typeof scope !== 'string' || !isScopeToken(scope)) {
      throw new TypeError(
        `requireScope(): expected a scope without blanks, quotes and backslashes, got ${describe(scope)}`,
      );
    }
  }
  return Object.freeze([...new Set(scopes as string[])]);
}

import type { ServerResponse } from 'node:http';
import { AuthError } from '../core/auth-error';
import { describe } from '../core/options';
import { isGranted, isScopeToken } from '../token/scopes';
import { runGuard } from './guard';
import type { Guard } from './guard';
import type { GateRequest, Middleware } from './http';

/** What a guard asks for: all of the scopes, or any one of them. */
export type ScopeRequirement = { readonly allOf: readonly string[] } | { readonly anyOf: readonly string[] };

/** The middleware that `requireScope()` makes. */
export interface ScopeGuard extends Middleware {
  /** What the guard asks for; contract checks hold it against openapi.yaml. */
  readonly requirement: ScopeRequirement;
}

/**
 * Makes the guard of one route: passes when the token has all of the scopes, or any one of them with
 * `{ anyOf: [...] }`; else 403 `insufficient_scope` (RFC 6750 section 3.1). Without `authenticate()` before it, it
 * never passes.
 *
 * @throws TypeError when no scope is given, or one is no scope-token (RFC 6749 section 3.3)
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
export function requireScope(...scopes: readonly [string, ...string[]]): ScopeGuard;
export function requireScope(scopes: readonly string[] | { readonly anyOf: readonly string[] }): ScopeGuard;
export function requireScope(...args: readonly unknown[]): ScopeGuard {
  const requirement = readRequirement(args);
  const requiredScopes = scopesOf(requirement);

  const guard: Guard = {
    name: 'requireScope()',
    judge: ({ scopes }) =>
      satisfies(scopes, requirement) ? undefined : new AuthError('insufficient_scope', { requiredScopes }),
  };

  function requireScope(req: GateRequest, res: ServerResponse, next: (error?: unknown) => void): void {
    runGuard(guard, req, res, next);
  }
  return Object.assign(requireScope, { requirement });
}

/** Whether granted scopes are enough. */
export function satisfies(granted: readonly string[], requirement: ScopeRequirement): boolean {
  const has = (scope: string): boolean => isGranted(granted, scope);
  return 'anyOf' in requirement ? requirement.anyOf.some(has) : requirement.allOf.every(has);
}

/** The scopes that a requirement names, as the challenge's `scope` lists them. */
export function scopesOf(requirement: ScopeRequirement): readonly string[] {
  return 'anyOf' in requirement ? requirement.anyOf : requirement.allOf;
}

/**
 * Reads what `requireScope()` accepts as arguments.
 *
 * @throws TypeError
 */
export function readRequirement(args: readonly unknown[]): ScopeRequirement {
  const [first] = args;
  if (args.length === 1 && Array.isArray(first)) return Object.freeze({ allOf: readScopeList(first) });
  if (args.length === 1 && typeof first === 'object' && first !== null) {
    if (Object.keys(first).join() !== 'anyOf') throw new TypeError('requireScope(): expected { anyOf: [...] }');
    return Object.freeze({ anyOf: readScopeList((first as { anyOf: unknown }).anyOf) });
  }
  return Object.freeze({ allOf: readScopeList(args) });
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

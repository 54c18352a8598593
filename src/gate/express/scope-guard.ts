import { AuthError } from '../core/errors';
import { didYouMean, isList, refuseUncalled } from '../core/options';
import { describeLack, readRequirement, readScopeList, satisfies, scopesOf } from '../gate/scope-requirement';
import { isScopeRequirement, makeGuard, requirementOf } from './guard';
import { isTrial } from './report-only';
import type { GateRequest, Middleware } from './request-state';

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
export function requireScope(...scopes: readonly string[]): Middleware;
export function requireScope(scopes: readonly string[] | { readonly anyOf: readonly string[] }): Middleware;
export function requireScope(...args: readonly unknown[]): Middleware {
  return scopeGuard(args);
}

/** @param known - the only scopes that a route may require; `undefined`: any */
function scopeGuard(args: readonly unknown[], known?: readonly string[]): Middleware {
  refuseUncalled("requireScope('orders:read')", args);
  const requirement = readRequirement(args);
  const own = scopesOf(requirement);
  requireKnown(own, known);
  const guard = makeGuard('requireScope', requirement, ({ scopes }, req) => {
    if (satisfies(scopes, requirement)) return undefined;
    const privateDetail = describeLack(scopes, requirement);
    return new AuthError('insufficient_scope', { privateDetail, requiredScopes: scopesOfRoute(req, guard) ?? own });
  });
  return guard;
}

/** @throws TypeError when a scope of a route is not one of the defined ones */
function requireKnown(scopes: readonly string[], known: readonly string[] | undefined): void {
  const unknown = known && scopes.find((scope) => !known.includes(scope));
  if (unknown === undefined) return;
  throw new TypeError(
    `requireScope(): ${JSON.stringify(unknown)} is not one of the defined scopes${didYouMean(unknown, known ?? [])}`,
  );
}

/**
 * The scopes of all guards in a row with this one on the route of the request, or of its first guards, so that
 * one challenge names what the whole row requires (RFC 6750 section 3.1). `undefined` where there are none.
 */
export function scopesOfRoute(req: GateRequest, guard?: Middleware): readonly string[] | undefined {
  const { route, method = '' } = req;
  const verb = method === 'HEAD' ? 'get' : method.toLowerCase();
  const stack = isList(route?.stack) ? (route.stack as readonly { method?: string; handle?: unknown }[]) : [];
  // A layer of `all()` has no method.
  const handlers = stack.flatMap(({ method: own, handle }) => {
    const isPassed = typeof handle === 'function' && isTrial(handle);
    return !isPassed && (own === undefined || own === verb) ? [handle] : [];
  });
  const requirements = handlers.map((handler) => (typeof handler === 'function' ? requirementOf(handler) : undefined));
  const at = guard ? handlers.indexOf(guard) : requirements.findIndex(Boolean);
  if (at < 0) return undefined;
  let first = at;
  while (requirements[first - 1]) first--;
  const end = requirements.indexOf(undefined, at);
  const row = requirements.slice(first, end < 0 ? undefined : end);
  // A guard that stands alone knows its own.
  if (guard && row.length === 1) return undefined;
  const lists = row.map((one) => (isScopeRequirement(one) ? scopesOf(one) : []));
  const [only = [], ...others] = lists.filter((scopes) => scopes.length > 0);
  const all = others.length > 0 ? [...new Set([...only, ...others.flat()])] : only;
  return all.length > 0 ? all : undefined;
}

/** The scopes of an API, declared once. */
export interface DefinedScopes<Scope extends string> {
  readonly scopes: readonly Scope[];
  /**
   * `requireScope()` for these scopes: any other one does not compile.
   *
   * @throws TypeError when a scope is not one of them
   */
  readonly requireScope: {
    (...scopes: readonly Scope[]): Middleware;
    (scopes: readonly Scope[] | { readonly anyOf: readonly Scope[] }): Middleware;
  };
}

/**
 * Declares the scopes of an API and makes a `requireScope()` that knows no others, so that a misspelt scope is found
 * before the first request.
 *
 * @throws TypeError when no scope is given, or one is not a scope-token (RFC 6749 section 3.3)
 *
 * @example
 * ```ts
 * import { Router } from 'express';
 * import { defineScopes } from 'tillgate';
 *
 * const { requireScope } = defineScopes(['orders:read', 'orders:write']);
 *
 * const orders = Router();
 * orders.get('/', requireScope('orders:read'), (req, res) => res.json([]));
 * ```
 */
export function defineScopes<const Scope extends string>(scopes: readonly Scope[]): DefinedScopes<Scope> {
  const known = readScopeList(scopes, 'defineScopes') as readonly Scope[];
  return { scopes: known, requireScope: (...args: readonly unknown[]) => scopeGuard(args, known) };
}

import type { IncomingMessage } from 'node:http';
import { AuthError } from '../core/errors';
import { didYouMean, isList, refuseUncalled } from '../core/options';
import type { Auth } from '../gate/options';
import { describeLack, readRequirement, readScopeList, satisfies, scopesOf } from '../gate/scope-requirement';
import type { ScopeRequirement } from '../gate/scope-requirement';
import { isByRequest, isScopeRequirement, makeGuard, requirementOf } from './guard';
import type { ByRequest, GuardRequirement } from './guard';
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
export function requireScope(...scopes: readonly [string, ...string[]]): Middleware;
export function requireScope(scopes: readonly string[] | { readonly anyOf: readonly string[] }): Middleware;
/**
 * Makes a guard whose scopes depend on the request, such as on the tool that a JSON-RPC body names: the token needs all
 * of those that the function returns, and none for an empty array. A function that throws, or returns anything but scopes,
 * refuses: 403 `access_denied`.
 *
 * @param scopesFor - gets the request: that of the framework where its parameter is declared as such, `(req: Request) => ...`
 * @throws TypeError when something is given besides the function
 *
 * @example
 * ```ts
 * import { Router, json } from 'express';
 * import type { Request } from 'express';
 * import { requireScope } from 'tillgate';
 *
 * const batches = Router();
 * const each = requireScope((req: Request) => (req.body as { kind: string }[]).map(({ kind }) => `${kind}:write`));
 * batches.post('/', json(), each, (req, res) => res.sendStatus(204));
 * ```
 */
export function requireScope<Req extends object = IncomingMessage & { readonly auth?: Auth | undefined }>(
  scopesFor: (req: Req) => readonly string[],
): Middleware;
export function requireScope(...args: readonly unknown[]): Middleware {
  return scopeGuard(args);
}

/** @param known - the only scopes that a route may require; `undefined`: any */
function scopeGuard(args: readonly unknown[], known?: readonly string[]): Middleware {
  refuseUncalled("requireScope('orders:read')", args);
  const requirement = readScopeGuard(args, known);
  const byRequest = isByRequest(requirement) ? requirement : undefined;
  const own = isByRequest(requirement) ? undefined : scopesOf(requirement);
  const guard = makeGuard('requireScope', requirement, ({ scopes }, req) => {
    let required = requirement as ScopeRequirement;
    try {
      if (byRequest) required = { allOf: byRequest.scopesFor(req) };
    } catch (cause) {
      const privateDetail = 'the function of requireScope() returned no scopes';
      return new AuthError('claim_refused', { privateDetail, cause });
    }
    if (satisfies(scopes, required)) return undefined;
    const privateDetail = describeLack(scopes, required);
    const requiredScopes = scopesOfRoute(req, guard) ?? own ?? scopesOf(required);
    return new AuthError('insufficient_scope', { privateDetail, requiredScopes });
  });
  return guard;
}

function readScopeGuard(args: readonly unknown[], known: readonly string[] | undefined): ScopeRequirement | ByRequest {
  const [given, ...others] = args;
  if (typeof given !== 'function' || others.length > 0) {
    const requirement = readRequirement(args);
    requireKnown(scopesOf(requirement), known);
    return requirement;
  }
  return {
    scopesFor(req) {
      const scopes: unknown = (given as (req: object) => unknown)(req);
      // Of an async function, which is refused: a rejection that nothing handles would end the process.
      if (scopes instanceof Promise) scopes.catch(() => undefined);
      if (Array.isArray(scopes) && scopes.length === 0) return [];
      const read = readScopeList(scopes, 'requireScope');
      requireKnown(read, known);
      return read;
    },
  };
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
 * The scopes of all guards that stand in a row with this one on the route of the request, or of its first guards, so that
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
  const lists = row.map((one) => scopesNamedBy(one, req));
  const [only = [], ...others] = lists.filter((scopes) => scopes.length > 0);
  const all = others.length > 0 ? [...new Set([...only, ...others.flat()])] : only;
  return all.length > 0 ? all : undefined;
}

function scopesNamedBy(requirement: GuardRequirement | undefined, req: GateRequest): readonly string[] {
  if (isScopeRequirement(requirement)) return scopesOf(requirement);
  if (!isByRequest(requirement)) return [];
  try {
    return requirement.scopesFor(req);
  } catch {
    // What it needs may not be there yet, such as the body before the gate.
    return [];
  }
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
    (...scopes: readonly [Scope, ...Scope[]]): Middleware;
    (scopes: readonly Scope[] | { readonly anyOf: readonly Scope[] }): Middleware;
    <Req extends object = IncomingMessage & { readonly auth?: Auth | undefined }>(
      scopesFor: (req: Req) => readonly Scope[],
    ): Middleware;
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

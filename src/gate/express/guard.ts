import type { IncomingMessage, ServerResponse } from 'node:http';
import { callNow, isThenable } from '../core/callbacks';
import { AuthError } from '../core/errors';
import { consoleLogger, errorText } from '../core/logger';
import { attempt, isList } from '../core/objects';
import { refuseUncalled } from '../core/options';
import { describe, didYouMean } from '../core/words';
import { describeLack, readRequirement, readScopeList, satisfies, scopesOf } from '../verifier/scope-requirement';
import type { ScopeRequirement } from '../verifier/scope-requirement';
import type { Auth } from '../verifier/options';
import { otherCopyOf, routeOf, stateOf } from './request-state';
import type { Enforcer, GateRequest, Middleware, Next, RequestState } from './request-state';
import { handleRejection, logUnexpected, sendInternalError } from './respond';

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
  const unknown = known && own.find((scope) => !known.includes(scope));
  if (unknown !== undefined) {
    const problem = `${JSON.stringify(unknown)} is not one of the defined scopes${didYouMean(unknown, known ?? [])}`;
    throw new TypeError(`requireScope(): ${problem}`);
  }
  const guard = makeGuard('requireScope', requirement, ({ scopes }, req) => {
    if (satisfies(scopes, requirement)) return undefined;
    const privateDetail = describeLack(scopes, requirement);
    return new AuthError('insufficient_scope', { privateDetail, requiredScopes: scopesOfRoute(req, guard) ?? own });
  });
  return guard;
}

/**
 * The scopes of all guards in a row with this one on the route of the request, or of its first guards, so that
 * one challenge names what the whole row requires (RFC 6750 section 3.1). `undefined` where there are none.
 */
export function scopesOfRoute(req: GateRequest, guard?: Middleware): readonly string[] | undefined {
  const handlers = handlersOf(req);
  const requirements = handlers.map(requirementOf);
  const at = guard ? handlers.indexOf(guard) : requirements.findIndex(Boolean);
  if (at < 0) return undefined;
  let first = at;
  while (requirements[first - 1]) first--;
  const end = requirements.indexOf(undefined, at);
  const row = requirements.slice(first, end < 0 ? undefined : end);
  // A guard that stands alone knows its own.
  if (guard && row.length === 1) return undefined;
  const lists = row.map(scopesIn);
  const [only = [], ...others] = lists.filter((scopes) => scopes.length > 0);
  const all = others.length > 0 ? [...new Set([...only, ...others.flat()])] : only;
  return all.length > 0 ? all : undefined;
}

/** The handlers of the route of a request, its guards among them. */
function handlersOf({ route, method = '' }: GateRequest): readonly object[] {
  const verb = method === 'HEAD' ? 'get' : method.toLowerCase();
  const stack = isList(route?.stack) ? (route.stack as readonly { method?: string; handle?: unknown }[]) : [];
  // A layer of `all()` has no method.
  return stack.flatMap(({ method: own, handle }) => {
    return typeof handle === 'function' && !isTrial(handle) && (own === undefined || own === verb) ? [handle] : [];
  });
}

/** The member that marks a trial, also one of another copy of this package. */
export const TRIAL: unique symbol = Symbol.for('tillgate.trial');

/** Whether a middleware is on trial: it decides nothing. */
function isTrial(middleware: object): boolean {
  return Object.hasOwn(middleware, TRIAL);
}

/** Whether the route of a request has a guard, which may come too late. */
export function hasGuard(req: GateRequest): boolean {
  return handlersOf(req).some(requirementOf);
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

/**
 * Makes a guard that allows a request when a claim of its token passes a test; else 403 `access_denied`. A test may
 * return a promise. One that returns anything but `true` refuses; an `AuthError` that it throws decides the response, such as
 * 401 for `new AuthError('inactive')` where a user no longer exists. Where it throws anything else, the test has failed: Express's
 * error handling gets an Error without `status`, and elsewhere the response is 500. If the token has no such claim, it is 403.
 *
 * @param test - gets the value of the claim, `undefined` when the token has none, and the request: that of the framework
 *   where its parameter is declared as such, `(value, req: Request) => ...`, else with the `params` of Express
 * @throws TypeError when the name is empty or the test is not a function
 *
 * @example
 * ```ts
 * import { Router } from 'express';
 * import { requireClaim } from 'tillgate';
 *
 * const berlin = Router();
 * berlin.get('/', requireClaim('store', (store) => store === 'berlin-1'), (req, res) => res.json([]));
 * ```
 */
export function requireClaim<
  Req extends object = IncomingMessage & Express.Request & { params: Record<string, string> },
>(name: string, test: (value: unknown, req: Req) => boolean | Promise<boolean>): Middleware {
  refuseUncalled("requireClaim('tenant', (value) => value === 'shop')", [name, test]);
  if (typeof name !== 'string' || name === '') {
    throw new TypeError(`requireClaim(): expected the name of a claim, got ${describe(name)}`);
  }
  if (typeof test !== 'function') {
    throw new TypeError(`requireClaim(): expected a test function, got ${describe(test)}`);
  }

  return makeGuard('requireClaim', { claim: name }, ({ claims }, req, { settings: { logger } }) => {
    const value = claims[name];
    const lack = value === undefined || value === null ? `the token has no ${name}` : undefined;
    function refusalOf(result: unknown): AuthError | undefined {
      if (result === true) return undefined;
      const said = result === false ? undefined : `the test of claim ${name} returned ${nameOfResult(result)}`;
      const privateDetail = [lack, said].filter(Boolean).join('; ') || `the test of claim ${name} returned false`;
      return new AuthError('claim_refused', { privateDetail });
    }
    function failed(cause: unknown): Error {
      if (cause instanceof AuthError) return cause;
      const failure = new Error(`the test of claim ${name} failed`, { cause });
      if (lack === undefined) return failure;
      // Any token can lack a claim: a test that cannot do without it must not be a 500 that callers cause.
      logger.error({ route: routeOf(req), error: errorText(failure) }, 'a test of requireClaim() failed');
      const privateDetail = `${lack}; the test of claim ${name} threw ${attempt(() => String(cause)) ?? 'something'}`;
      return new AuthError('claim_refused', { privateDetail, cause });
    }
    try {
      const result: unknown = callNow(() => test(value, req as object as Req));
      return isThenable(result) ? Promise.resolve(result).then(refusalOf, failed) : refusalOf(result);
    } catch (cause) {
      return failed(cause);
    }
  });
}

/** What a test returned in the place of `true`. A text is not quoted: it can be that of a token. */
function nameOfResult(result: unknown): string {
  if (result === undefined) return 'nothing';
  return `${typeof result === 'string' ? 'a string' : describe(result)}, not true`;
}

/**
 * Makes a guard that allows every caller with an accepted token: for routes that need a token and no scope.
 *
 * @example
 * ```ts
 * import { Router } from 'express';
 * import { requireAuthenticated } from 'tillgate';
 *
 * const me = Router();
 * me.get('/', requireAuthenticated(), (req, res) => res.json({ client: req.auth?.clientId }));
 * ```
 */
export function requireAuthenticated(): Middleware;
export function requireAuthenticated(...args: readonly unknown[]): Middleware {
  refuseUncalled('requireAuthenticated()', args);
  return makeGuard('requireAuthenticated', {}, () => undefined);
}

/**
 * Makes the middleware of a route that streams: ends its response when a request with the same token would be refused, by
 * any of the gates before it. An
 * event stream ends as usual, and its client is refused when it connects again; any other response is cut off, so that it
 * does not look complete. Without `authenticate()` before it, nothing is allowed.
 *
 * @example
 * ```ts
 * import { Router } from 'express';
 * import { endWithToken, requireScope } from 'tillgate';
 *
 * const tickets = Router();
 * tickets.get('/events', requireScope('kitchen:read'), endWithToken(), (req, res) => {
 *   res.type('text/event-stream').write(': hello\n\n');
 * });
 * ```
 */
export function endWithToken(): Middleware;
export function endWithToken(...args: readonly unknown[]): Middleware {
  refuseUncalled('endWithToken()', args);
  return function endWithToken(req: GateRequest, res: ServerResponse, next: Next): void {
    const state = stateOf(req);
    if (!state) return refuseWithoutGate('endWithToken', req, res);
    // The client may have gone while the gate decided. A pipelined response that has not got its socket never closes.
    const isClosed = (): boolean => res.destroyed || req.socket?.destroyed;
    const end = (): void => endResponse(res);
    for (const { enforcer, auth, refusal } of resultsOf(state)) {
      if (refusal) return enforcer.refuse(req, res, refusal, next);
      if (auth && !isClosed()) res.once('close', enforcer.hold(auth, end, isClosed));
    }
    next();
  } as Middleware;
}

function endResponse(res: ServerResponse): void {
  // The handler may go on writing: an error event without a listener would end the process.
  res.on('error', () => undefined);
  const isEventStream = String(res.getHeader('Content-Type')).startsWith('text/event-stream');
  if (res.headersSent && isEventStream) res.end();
  else res.destroy();
}

/** The member under which a guard carries its requirement, also in another copy of this package. */
const GUARD: unique symbol = Symbol.for('tillgate.guard');

/** What a guard requires. Empty: any accepted token. */
export type GuardRequirement = ScopeRequirement | { readonly claim: string } | Readonly<Record<string, never>>;

/** What a guard requires, for route audits; `undefined` for any other middleware. */
export function requirementOf(middleware: object): GuardRequirement | undefined {
  return (middleware as { readonly [GUARD]?: GuardRequirement })[GUARD];
}

/** The scopes that a requirement names. */
export function scopesIn(requirement: GuardRequirement | undefined): readonly string[] {
  const isOfScopes = requirement && (Object.hasOwn(requirement, 'allOf') || Object.hasOwn(requirement, 'anyOf'));
  return isOfScopes ? scopesOf(requirement as ScopeRequirement) : [];
}

/**
 * Checks the caller of a request that a gate has accepted.
 *
 * @returns the refusal, `undefined` to allow the request, or another Error where the check has failed
 */
export type GuardCheck = (
  auth: Auth,
  req: GateRequest,
  enforcer: Enforcer,
) => Error | undefined | Promise<Error | undefined>;

/** The checks of guards, which `reportOnly()` can try out. */
export const guardChecks = new WeakMap<object, GuardCheck>();

/** What one gate has made of a request, and why a guard does not allow that: a refusal, or its check has failed. */
type GuardFailure = { readonly result: RequestState; readonly reason: Error } | undefined;

/**
 * Makes a guard. It has to hold for the result of every gate before it; the first of them that it does not hold for
 * refuses. A request without a gate before its guard is never allowed: a mistake of the app, so 500 and a log entry.
 */
function makeGuard(name: string, requirement: GuardRequirement, check: GuardCheck): Middleware {
  function guard(req: GateRequest, res: ServerResponse, next: Next): void {
    const state = stateOf(req);
    if (!state) return refuseWithoutGate(name, req, res);
    const conclude = (failure: GuardFailure): void => {
      for (const result of state.earlier) result.allowed = !failure;
      state.allowed = !failure;
      if (!failure) return next();
      const { reason, result } = failure;
      if (reason instanceof AuthError) return result.enforcer.refuse(req, res, reason, next, result.auth);
      const { refusals, logger } = result.enforcer.settings;
      // Errors of `next()` are handled by Express, whose routers set `req.next`, or by an app that asked for them; elsewhere `next`
      // may be the handler itself.
      if (refusals === 'next' || Object.hasOwn(req, 'next')) return next(reason);
      logUnexpected(logger, req, reason);
      sendInternalError(req, res);
    };
    const failure = state.earlier.length === 0 ? failureOf(state, req) : failureOfAny(resultsOf(state), req);
    if (!(failure instanceof Promise)) return conclude(failure);
    handleRejection(failure.then(conclude), { req, res, next, logger: state.enforcer.settings.logger });
  }

  function failureOf(result: RequestState, req: GateRequest): GuardFailure | Promise<GuardFailure> {
    const { auth, enforcer, refusal } = result;
    const checked = auth ? check(auth, req, enforcer) : (refusal ?? new AuthError('missing_token'));
    return checked instanceof Promise
      ? checked.then((late) => late && { result, reason: late })
      : checked && { result, reason: checked };
  }

  async function failureOfAny(results: readonly RequestState[], req: GateRequest): Promise<GuardFailure> {
    for (const result of results) {
      const failure = await failureOf(result, req);
      if (failure) return failure;
    }
    return undefined;
  }

  Object.defineProperty(guard, 'name', { value: name });
  guardChecks.set(guard, check);
  return Object.assign(guard as Middleware, { [GUARD]: Object.freeze(requirement) });
}

/** What all gates have made of a request, the first one first. */
function resultsOf(state: RequestState): readonly RequestState[] {
  return [...state.earlier, state];
}

function refuseWithoutGate(name: string, req: GateRequest, res: ServerResponse): void {
  const other = otherCopyOf(req);
  const why =
    other === undefined
      ? 'is on a route without authenticate() before it'
      : 'is after an authenticate() by another copy of tillgate, which it does not trust: `npm ls tillgate` lists them';
  consoleLogger.error({ route: routeOf(req), ...(other !== undefined && { other }) }, `${name}() ${why}`);
  sendInternalError(req, res);
}

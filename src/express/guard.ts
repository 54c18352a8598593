import type { IncomingMessage, ServerResponse } from 'node:http';
import { AuthError } from '../core/auth-error';
import { consoleLogger } from '../core/logger';
import { ownValue } from '../core/objects';
import { describe } from '../core/options';
import { isScopeToken } from '../token/scopes';
import { routeOf, stateOf } from './request';
import type { Auth, GateRequest, Middleware, Next, RequestState } from './request';
import { handleRejection, sendInternalError } from './respond';

/** The member under which a guard carries its requirement, also in another copy of this package. */
export const GUARD: unique symbol = Symbol.for('tillgate.guard');

/** Scopes that a guard requires: all of them, or any one of them. */
export type ScopeRequirement = AllOf | AnyOf;

interface AllOf {
  readonly allOf: readonly string[];
}

interface AnyOf {
  readonly anyOf: readonly string[];
}

/** What a guard requires. Empty: any accepted token. */
export type GuardRequirement = ScopeRequirement | { readonly claim: string } | Readonly<Record<string, never>>;

/** A middleware that decides whether an authenticated caller may use a route. */
export interface Guard extends Middleware {
  /** What the guard requires; route audits compare it with openapi.yaml. */
  readonly [GUARD]: GuardRequirement;
}

/** Returns the refusal, or `undefined` to allow the request. */
type GuardCheck = (auth: Auth, req: GateRequest) => AuthError | undefined | Promise<AuthError | undefined>;

/** Makes a guard. A request without a gate before it is never allowed: a mistake of the app, so 500 and a log entry. */
function makeGuard(name: string, requirement: GuardRequirement, check: GuardCheck): Guard {
  function guard(req: GateRequest, res: ServerResponse, next: Next): void {
    const state = stateOf(req);
    if (!state) {
      consoleLogger.error({ route: routeOf(req) }, `${name}() is on a route without authenticate() before it`);
      return sendInternalError(req, res);
    }
    const { auth, gate } = state;
    if (!auth) return gate.refuse(req, res, new AuthError('missing_token'), next);
    const refusal = check(auth, req);
    if (refusal === undefined) allow(state, next);
    else if (refusal instanceof AuthError) gate.refuse(req, res, refusal, next);
    else decideLater(refusal, state, req, res, next);
  }
  Object.defineProperty(guard, 'name', { value: name });
  return Object.assign(guard, { [GUARD]: Object.freeze(requirement) });
}

function allow(state: RequestState, next: Next): void {
  state.allowed = true;
  next();
}

/** A guard whose check is a promise; only the claim tests of apps return one. */
function decideLater(
  refusal: Promise<AuthError | undefined>,
  state: RequestState,
  req: GateRequest,
  res: ServerResponse,
  next: Next,
): void {
  const { gate } = state;
  const decided = refusal.then((error) => (error ? gate.refuse(req, res, error, next) : allow(state, next)));
  handleRejection(decided, { req, res, next, logger: gate.logger });
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
export function requireAuthenticated(): Guard {
  return makeGuard('requireAuthenticated', {}, () => undefined);
}

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
  const requiredScopes = Object.values(requirement)[0] as readonly string[];
  return makeGuard('requireScope', requirement, ({ scopes }) =>
    satisfies(scopes, requirement) ? undefined : new AuthError('insufficient_scope', { requiredScopes }),
  );
}

/** Whether granted scopes are enough. */
export function satisfies(granted: readonly string[], requirement: ScopeRequirement): boolean {
  // Not `'anyOf' in requirement`: a polluted prototype would make every requirement one of no scopes.
  if (!Object.hasOwn(requirement, 'anyOf')) {
    for (const scope of (requirement as AllOf).allOf) if (!isGranted(granted, scope)) return false;
    return true;
  }
  for (const scope of (requirement as AnyOf).anyOf) if (isGranted(granted, scope)) return true;
  return false;
}

/** Up to here looking through a list is quicker than a set. */
const SHORT_LIST = 16;
/** The lists are frozen, so each long one is turned into a set once. */
const sets = new WeakMap<readonly string[], ReadonlySet<string>>();

/** Whether a scope was granted. Scopes compare as whole strings: `orders` is not part of `orders:read`. */
export function isGranted(granted: readonly string[], scope: string): boolean {
  if (granted.length <= SHORT_LIST) return granted.includes(scope);
  const known = sets.get(granted) ?? new Set(granted);
  sets.set(granted, known);
  return known.has(scope);
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

/** Decides about the value of a claim; `undefined` when the token has none. Only `true` allows the request. */
export type ClaimTest = (value: unknown, req: IncomingMessage) => boolean | Promise<boolean>;

/**
 * Makes a guard that allows a request when a claim of its token passes a test; else 403 `access_denied`. A test may
 * return a promise. One that throws, rejects, or returns anything but `true` refuses.
 *
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
export function requireClaim(name: string, test: ClaimTest): Guard {
  if (typeof name !== 'string' || name === '') {
    throw new TypeError(`requireClaim(): expected the name of a claim, got ${describe(name)}`);
  }
  if (typeof test !== 'function') {
    throw new TypeError(`requireClaim(): expected a test function, got ${describe(test)}`);
  }

  function failed(cause: unknown): AuthError {
    return new AuthError('claim_refused', { privateDetail: `the test of claim ${name} threw`, cause });
  }
  function refusalOf(result: unknown): AuthError | undefined {
    return result === true ? undefined : new AuthError('claim_refused', { privateDetail: `claim ${name}` });
  }
  return makeGuard('requireClaim', { claim: name }, ({ claims }, req) => {
    try {
      const result: unknown = test(ownValue(claims, name), req);
      return isThenable(result) ? Promise.resolve(result).then(refusalOf, failed) : refusalOf(result);
    } catch (cause) {
      return failed(cause);
    }
  });
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

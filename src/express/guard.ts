import type { IncomingMessage, ServerResponse } from 'node:http';
import { AuthError } from '../core/auth-error';
import { consoleLogger } from '../core/logger';
import { ownValue } from '../core/objects';
import { describe } from '../core/options';
import type { Auth } from './auth';
import { routeOf } from './http';
import type { GateRequest, Middleware, Next } from './http';
import { stateOf } from './request-state';
import { sendInternalError } from './respond';

/** The member under which a guard carries its requirement, also in another copy of this package. */
export const GUARD: unique symbol = Symbol.for('tillgate.guard');

/** Scopes that a guard requires: all of them, or any one of them. */
export type ScopeRequirement = { readonly allOf: readonly string[] } | { readonly anyOf: readonly string[] };

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
export function makeGuard(name: string, requirement: GuardRequirement, check: GuardCheck): Guard {
  function guard(req: GateRequest, res: ServerResponse, next: Next): void {
    const state = stateOf(req);
    if (!state) {
      consoleLogger.error({ route: routeOf(req) }, `${name}() is on a route without authenticate() before it`);
      return sendInternalError(req, res);
    }
    const { auth, gate } = state;
    if (!auth) return gate.refuse(req, res, new AuthError('missing_token'), next);
    const refusal = check(auth, req);
    if (refusal instanceof Promise) refusal.then(decide).catch(next);
    else decide(refusal);

    function decide(error: AuthError | undefined): void {
      if (error) return gate.refuse(req, res, error, next);
      state!.allowed = true;
      next();
    }
  }
  Object.defineProperty(guard, 'name', { value: name });
  return Object.assign(guard, { [GUARD]: Object.freeze(requirement) });
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

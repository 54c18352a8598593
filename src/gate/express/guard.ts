import type { IncomingMessage, ServerResponse } from 'node:http';
import { isThenable, valueOf } from '../core/callbacks';
import { AuthError } from '../core/errors';
import { consoleLogger } from '../core/logger';
import { describe, refuseUncalled } from '../core/options';
import type { Auth } from '../gate/options';
import { letTryGuard } from './report-only';
import { otherCopyOf, routeOf, stateOf } from './request-state';
import type { GateRequest, Middleware, Next, RequestState } from './request-state';
import { handleRejection, sendInternalError } from './respond';
import { scopesOf } from '../gate/scope-requirement';
import type { ScopeRequirement } from '../gate/scope-requirement';

/**
 * Makes a guard that allows a request when a claim of its token passes a test; else 403 `access_denied`. A test may
 * return a promise. One that throws, rejects, or returns anything but `true` refuses; an `AuthError` that it throws decides
 * the response, such as 401 for `new AuthError('inactive')` where a user no longer exists.
 *
 * @param test - gets the value of the claim, `undefined` when the token has none, and the request: that of the framework
 *   where its parameter is declared as such, `(value, req: Request) => ...`
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
export function requireClaim<Req extends object = IncomingMessage & { readonly auth?: Auth | undefined }>(
  name: string,
  test: (value: unknown, req: Req) => boolean | Promise<boolean>,
): Middleware {
  refuseUncalled("requireClaim('tenant', (value) => value === 'shop')", [name, test]);
  if (typeof name !== 'string' || name === '') {
    throw new TypeError(`requireClaim(): expected the name of a claim, got ${describe(name)}`);
  }
  if (typeof test !== 'function') {
    throw new TypeError(`requireClaim(): expected a test function, got ${describe(test)}`);
  }

  function failed(cause: unknown): AuthError {
    if (cause instanceof AuthError) return cause;
    return new AuthError('claim_refused', { privateDetail: `the test of claim ${name} threw`, cause });
  }
  function refusalOf(result: unknown): AuthError | undefined {
    return result === true ? undefined : new AuthError('claim_refused', { privateDetail: `claim ${name}` });
  }
  return makeGuard('requireClaim', { claim: name }, ({ claims }, req) => {
    try {
      const result: unknown = valueOf(() => test(claims[name], req as object as Req));
      return isThenable(result) ? Promise.resolve(result).then(refusalOf, failed) : refusalOf(result);
    } catch (cause) {
      return failed(cause);
    }
  });
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
    for (const { gate, auth, refusal } of resultsOf(state)) {
      if (refusal) return gate.refuse(req, res, refusal, next);
      if (auth && !isClosed()) res.once('close', gate.hold(auth, end, isClosed));
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

export function isScopeRequirement(requirement: GuardRequirement | undefined): requirement is ScopeRequirement {
  return requirement !== undefined && (Object.hasOwn(requirement, 'allOf') || Object.hasOwn(requirement, 'anyOf'));
}

/** What one gate has made of a request, and why a guard does not allow that. */
interface GuardFailure {
  readonly result: RequestState;
  readonly refusal: AuthError;
}

type GuardCheck = (
  auth: Auth,
  req: GateRequest,
  gate: RequestState['gate'],
) => AuthError | undefined | Promise<AuthError | undefined>;

/**
 * Makes a guard. It has to hold for the result of every gate before it; the first of them that it does not hold for
 * refuses. A request without a gate before its guard is never allowed: a mistake of the app, so 500 and a log entry.
 *
 * @param check - returns the refusal, or `undefined` to allow the request
 */
export function makeGuard(name: string, requirement: GuardRequirement, check: GuardCheck): Middleware {
  const scopes = isScopeRequirement(requirement) ? scopesOf(requirement) : [];

  function guard(req: GateRequest, res: ServerResponse, next: Next): void {
    const state = stateOf(req);
    if (!state) return refuseWithoutGate(name, req, res);
    const conclude = (failure: GuardFailure | undefined): void => {
      if (failure) return failure.result.gate.refuse(req, res, failure.refusal, next, failure.result.auth);
      for (const result of resultsOf(state)) result.allowed = true;
      next();
    };
    const failure = state.earlier.length === 0 ? failureOf(state, req) : failureOfAny(resultsOf(state), req);
    if (!(failure instanceof Promise)) return conclude(failure);
    handleRejection(failure.then(conclude), { req, res, next, logger: state.gate.logger });
  }

  function failureOf(
    result: RequestState,
    req: GateRequest,
  ): GuardFailure | undefined | Promise<GuardFailure | undefined> {
    const { auth, gate, refusal } = result;
    const checked = auth ? check(auth, req, gate) : (refusal ?? new AuthError('missing_token'));
    return checked instanceof Promise
      ? checked.then((late) => late && { result, refusal: late })
      : checked && { result, refusal: checked };
  }

  async function failureOfAny(results: readonly RequestState[], req: GateRequest): Promise<GuardFailure | undefined> {
    for (const result of results) {
      const failure = await failureOf(result, req);
      if (failure) return failure;
    }
    return undefined;
  }

  Object.defineProperty(guard, 'name', { value: name });
  letTryGuard(guard, { name, scopes, check });
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

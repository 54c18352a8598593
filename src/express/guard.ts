import type { IncomingMessage, ServerResponse } from 'node:http';
import { AuthError } from '../core/errors';
import { consoleLogger } from '../core/logger';
import { describe, isList, option, readOptions, readStrings, refuseUncalled } from '../core/options';
import type { StepUp } from '../core/problem';
import type { Auth } from '../gate/options';
import { guardDecided } from './decision';
import { otherCopyOf, routeOf, stateOf } from './request-state';
import type { GateRequest, Middleware, Next, RequestState } from './request-state';
import { handleRejection, sendInternalError } from './respond';
import { describeLack, readRequirement, satisfies, scopesOf } from '../gate/scope-requirement';
import type { ScopeRequirement } from '../gate/scope-requirement';
import { ScopeTable } from '../gate/scope-table';
import type { OldName, ScopeDeclaration } from '../gate/scope-table';

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
export function requireScope(...args: readonly unknown[]): Middleware {
  refuseUncalled("requireScope('orders:read')", args);
  return scopeGuard(readRequirement(args));
}

function scopeGuard(requirement: ScopeRequirement, table?: ScopeTable): Middleware {
  const own = scopesOf(requirement);
  const guard = makeGuard('requireScope', requirement, ({ scopes }, req, { clock, isEnforced }, res) => {
    if (satisfies(scopes, requirement)) return undefined;
    const changed = table?.satisfiedBy(scopes, requirement, clock());
    if (changed) {
      if (changed.old && isEnforced) announceEnd(res, changed.old);
      return undefined;
    }
    const privateDetail = describeLack(scopes, requirement);
    return new AuthError('insufficient_scope', { privateDetail, requiredScopes: scopesInARow(guard, req) ?? own });
  });
  return guard;
}

/** Says that the client uses an old name, and when it ends (RFC 9745 section 2, RFC 8594 section 3). */
function announceEnd(res: ServerResponse, { sinceMs, untilMs }: OldName): void {
  if (res.headersSent) return;
  res.setHeader('Deprecation', `@${sinceMs / 1000}`);
  res.setHeader('Sunset', new Date(untilMs).toUTCString());
}

/**
 * The scopes of all guards that stand in a row with this one on its route, so that one challenge names what the whole
 * row requires (RFC 6750 section 3.1). `undefined` where it stands alone, or not on a route.
 */
function scopesInARow(guard: Middleware, { route, method = '' }: GateRequest): readonly string[] | undefined {
  const verb = method === 'HEAD' ? 'get' : method.toLowerCase();
  const stack = isList(route?.stack) ? (route.stack as readonly { method?: string; handle?: unknown }[]) : [];
  // A layer of `all()` has no method.
  const handlers = stack.flatMap((layer) =>
    layer.method === undefined || layer.method === verb ? [layer.handle] : [],
  );
  const requirements = handlers.map((handler) => (typeof handler === 'function' ? requirementOf(handler) : undefined));
  const at = handlers.indexOf(guard);
  if (at < 0) return undefined;
  let first = at;
  while (requirements[first - 1]) first--;
  const end = requirements.indexOf(undefined, at);
  const row = requirements.slice(first, end < 0 ? undefined : end).filter(isScopeRequirement);
  return row.length > 1 ? [...new Set(row.flatMap(scopesOf))] : undefined;
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
  };
}

/** The names that a route may require: what is declared or implied, without old names. */
export type CurrentScope<Declared extends Readonly<Record<string, ScopeDeclaration>>> = {
  readonly [Name in keyof Declared & string]: Declared[Name] extends { readonly replacedBy: string }
    ? never
    : Name | (Declared[Name] extends { readonly implies: readonly (infer Implied extends string)[] } ? Implied : never);
}[keyof Declared & string];

/**
 * Declares the scopes of an API and makes a `requireScope()` that knows no others, so that a misspelt scope is found
 * before the first request. As an object it also says what a scope implies, and until when its old name works: a response
 * to a token with the old name says so (`Deprecation`, RFC 9745; `Sunset`, RFC 8594).
 *
 * @throws TypeError when no scope is given, one is not a scope-token (RFC 6749 section 3.3), or a declaration is wrong
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
export function defineScopes<const Scope extends string>(scopes: readonly Scope[]): DefinedScopes<Scope>;
export function defineScopes<const Declared extends Readonly<Record<string, ScopeDeclaration>>>(
  scopes: Declared,
): DefinedScopes<CurrentScope<Declared>>;
export function defineScopes(scopes: unknown): DefinedScopes<string> {
  const table = new ScopeTable(scopes);
  return {
    scopes: table.scopes,
    requireScope(...args: readonly unknown[]) {
      refuseUncalled("requireScope('orders:read')", args);
      const requirement = readRequirement(args);
      table.requireKnown(scopesOf(requirement));
      return scopeGuard(requirement, table);
    },
  };
}

/**
 * Makes a guard that allows a request when a claim of its token passes a test; else 403 `access_denied`. A test may
 * return a promise. One that throws, rejects, or returns anything but `true` refuses.
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
    return new AuthError('claim_refused', { privateDetail: `the test of claim ${name} threw`, cause });
  }
  function refusalOf(result: unknown): AuthError | undefined {
    return result === true ? undefined : new AuthError('claim_refused', { privateDetail: `claim ${name}` });
  }
  return makeGuard('requireClaim', { claim: name }, ({ claims }, req) => {
    try {
      const result: unknown = test(claims[name], req as object as Req);
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
 * Makes a guard that requires how, or how recently, the user of a token has authenticated; else 401
 * `insufficient_user_authentication` with what is needed (RFC 9470 section 3). A token without `acr` or `auth_time` does
 * not pass.
 *
 * @param required - `acr`: accepted authentication context classes, one of which is enough; `maxAgeSeconds`: longest time
 *   since `auth_time`. One of both at least
 * @throws TypeError when an option is wrong
 *
 * @example
 * ```ts
 * import { Router } from 'express';
 * import { requireAuthentication, requireScope } from 'tillgate';
 *
 * const refunds = Router();
 * const recent = requireAuthentication({ acr: 'urn:example:mfa', maxAgeSeconds: 300 });
 * refunds.post('/', requireScope('payments:refund'), recent, (req, res) => res.sendStatus(204));
 * ```
 */
export function requireAuthentication(required: {
  readonly acr?: string | readonly string[] | undefined;
  readonly maxAgeSeconds?: number | undefined;
}): Middleware;
export function requireAuthentication(...args: readonly unknown[]): Middleware {
  refuseUncalled('requireAuthentication({ maxAgeSeconds: 300 })', args);
  const { acr: acrValues, maxAgeSeconds } = readOptions('requireAuthentication', args[0], STEP_UP_OPTIONS);
  if (acrValues === undefined && maxAgeSeconds === undefined) {
    throw new TypeError('requireAuthentication(): expected "acr", "maxAgeSeconds", or both');
  }
  const stepUp = Object.freeze({ acrValues, maxAgeSeconds });

  return makeGuard('requireAuthentication', { stepUp }, ({ claims }, _req, { clock }) => {
    const { acr, auth_time: authTime } = claims;
    const refusal = (privateDetail: string) => new AuthError('step_up_required', { privateDetail, stepUp });
    if (acrValues && !acrValues.some((accepted) => accepted === acr)) return refusal(`acr is ${describe(acr)}`);
    if (maxAgeSeconds === undefined) return undefined;
    // A time in the future says nothing about when the user has authenticated.
    const ageSeconds = typeof authTime === 'number' ? clock() / 1000 - authTime : NaN;
    const isRecent = ageSeconds >= -CLOCK_TOLERANCE_SECONDS && ageSeconds <= maxAgeSeconds;
    return isRecent ? undefined : refusal(`auth_time is ${describe(authTime)}`);
  });
}

/** The clock of the issuer may be ahead. */
const CLOCK_TOLERANCE_SECONDS = 60;
const STEP_UP_OPTIONS = {
  // A challenge separates them by blanks (RFC 9470 section 3).
  acr: option('a class without blanks, or an array of them', (given) => {
    const classes = readStrings(given);
    return classes?.every((one) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(one)) ? classes : undefined;
  }),
  maxAgeSeconds: option.number({ unit: 'seconds', min: 0, integer: true }),
};

/**
 * Makes the middleware of a route that streams: ends its response when a request with the same token would be refused. An
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
    if (state.auth)
      res.once(
        'close',
        state.gate.hold(state.auth, () => endResponse(res)),
      );
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
export type GuardRequirement =
  ScopeRequirement | { readonly claim: string } | { readonly stepUp: StepUp } | Readonly<Record<string, never>>;

/** What a guard requires, for route audits; `undefined` for any other middleware. */
export function requirementOf(middleware: object): GuardRequirement | undefined {
  return (middleware as { readonly [GUARD]?: GuardRequirement })[GUARD];
}

function isScopeRequirement(requirement: GuardRequirement | undefined): requirement is ScopeRequirement {
  return requirement !== undefined && (Object.hasOwn(requirement, 'allOf') || Object.hasOwn(requirement, 'anyOf'));
}

/**
 * A request without a gate before its guard is never allowed: a mistake of the app, so 500 and a log entry.
 *
 * @param check - returns the refusal, or `undefined` to allow the request
 */
function makeGuard(
  name: string,
  requirement: GuardRequirement,
  check: (
    auth: Auth,
    req: GateRequest,
    gate: RequestState['gate'],
    res: ServerResponse,
  ) => AuthError | undefined | Promise<AuthError | undefined>,
): Middleware {
  const scopes = isScopeRequirement(requirement) ? scopesOf(requirement) : [];
  function guard(req: GateRequest, res: ServerResponse, next: Next): void {
    const state = stateOf(req);
    if (!state) return refuseWithoutGate(name, req, res);
    const { auth, gate } = state;
    const decide = (refusal: AuthError | undefined): void => {
      if (state.isMeasured) guardDecided(req, name, refusal === undefined, scopes);
      if (refusal) return gate.refuse(req, res, refusal, next);
      state.allowed = true;
      next();
    };
    const refusal = auth ? check(auth, req, gate, res) : new AuthError('missing_token');
    if (refusal instanceof Promise) handleRejection(refusal.then(decide), { req, res, next, logger: gate.logger });
    else decide(refusal);
  }
  Object.defineProperty(guard, 'name', { value: name });
  return Object.assign(guard as Middleware, { [GUARD]: Object.freeze(requirement) });
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

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

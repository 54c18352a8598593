import { dirname } from 'node:path';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { AuthError } from '../core/errors';
import { loggablePath } from '../core/logger';
import { describe } from '../core/words';
import type { RouteLabels } from '../core/route-labels';
import type { Auth } from '../verifier/options';
import type { HeldCallers } from '../verifier/held';
import type { GateSettings } from '../verifier/read-options';
import type { Caller } from '../token/fair-queue';

interface WithAuth {
  /** The caller; `undefined` before `authenticate()`, and after an optional one for a request without a token. */
  auth?: Auth | undefined;
}

/* eslint-disable @typescript-eslint/ban-ts-comment, @typescript-eslint/consistent-type-imports -- the package is there while an app migrates from it only */
/** @ts-ignore */
type OtherAuth = import('express-oauth2-jwt-bearer').AuthResult;
/* eslint-enable @typescript-eslint/ban-ts-comment, @typescript-eslint/consistent-type-imports */

/** Where express-oauth2-jwt-bearer is installed, `req.auth` has its type: two declarations would not compile. */
type RequestMembers = string extends keyof OtherAuth ? WithAuth : object;

declare global {
  // eslint-disable-next-line @typescript-eslint/no-namespace -- declares a member of Express's request
  namespace Express {
    // eslint-disable-next-line @typescript-eslint/no-empty-object-type -- what it extends has the member
    interface Request extends RequestMembers {}
  }
}

/**
 * A middleware for Express 4 and 5, and for whatever else calls `(req, res, next)` with the objects of `node:http` or
 * `node:http2`; typed without the types of a framework.
 */
export type Middleware = (
  req: IncomingMessage | Http2ServerRequest,
  res: ServerResponse | Http2ServerResponse,
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- frameworks disagree about what an error is
  next: (error?: any) => void,
) => void;

/** Continues with the next middleware, or with the app's error handler. */
export type Next = (error?: unknown) => void;

/** The request of Express 4 or 5: every member beyond Node's own is optional. */
export interface GateRequest extends IncomingMessage {
  originalUrl?: string;
  baseUrl?: string;
  route?: { readonly path?: unknown; readonly stack?: unknown };
  body?: unknown;
  /** `true` for a request of Node's events `upgrade` and `connect`: its connection is no longer HTTP. */
  upgrade?: boolean;
  /** Address of the caller, as Express computes it by its setting `trust proxy`. */
  ip?: unknown;
  /** Request id, if something before the gate has set one. */
  id?: unknown;
  auth?: Auth | undefined;
}

/** What carries out the decisions of a gate, as guards and trials after it use it. */
export interface Enforcer {
  readonly settings: Pick<GateSettings, 'logger' | 'schedule' | 'unguarded' | 'problemTypes' | 'refusals'>;
  /** Calls `end` when the token of the caller is no longer accepted. */
  readonly hold: HeldCallers['hold'];
  /** Refuses as the gate does: its presentation, its log, its `onDecision`. */
  readonly refuse: (req: GateRequest, res: ServerResponse, refusal: AuthError, next: Next, auth?: Auth) => void;
  /** Calls `task` when the gate is closed; immediately where it is. */
  readonly onClose: (task: () => void) => void;
}

/** What a gate has made of a request. Guards trust this, not `req.auth`, which any middleware can assign. */
export interface RequestState {
  /** Of the gate that has decided. */
  readonly enforcer: Enforcer;
  /** The results of earlier gates, the last one of each: a guard has to hold for all of them. */
  readonly earlier: readonly RequestState[];
  /** Why the gate refused the request, where the app went on nevertheless. */
  readonly refusal: AuthError | undefined;
  /** `undefined` for a request without a token that an optional gate accepted. */
  readonly auth: Auth | undefined;
  /** Whether the last guard has allowed the request; `undefined` before the first one, `false` where the gate has refused it. */
  allowed: boolean | undefined;
  /** The strictest setting of all gates before this point. */
  unguarded: GateSettings['unguarded'];
}

/** A WeakMap, because no other middleware can forge or copy its entries. */
const states = new WeakMap<object, RequestState>();

const NONE: readonly RequestState[] = Object.freeze([]);

/** Starts the state of a request that a gate has decided about. A guard that ran before the gate does not count. */
export function openState(
  req: GateRequest,
  enforcer: Enforcer,
  auth: Auth | undefined,
  refusal?: AuthError,
): RequestState {
  const last = states.get(req);
  const earlier = last ? [...last.earlier, last].filter((one) => one.enforcer !== enforcer) : NONE;
  const { unguarded } = enforcer.settings;
  const state = { enforcer, earlier, auth, refusal, allowed: undefined, unguarded };
  states.set(req, state);
  return state;
}

/** What each copy of this package in the process has accepted, to say so: it allows nothing. */
const COPIES: unique symbol = Symbol.for('tillgate.copies');
type Copies = Map<(req: object) => boolean, string>;
const registry = globalThis as { [COPIES]?: Copies };
const hasAccepted = (req: object): boolean => states.has(req);

/** Makes this copy known to the guards of others. Called with the first gate, because loading a module changes no global. */
export function registerCopy(): void {
  // A bundle may have no such name.
  const place = typeof __dirname === 'string' ? dirname(dirname(__dirname)) : 'a bundle';
  (registry[COPIES] ??= new Map()).set(hasAccepted, place);
}

/** Where the other copy of this package is whose gate accepted a request; `undefined`: none did. */
export function otherCopyOf(req: object): string | undefined {
  return [...(registry[COPIES] ?? [])].find(([isAccepted]) => isAccepted(req))?.[1];
}

/** The state of a request, or `undefined` when no gate has accepted it. */
export function stateOf(req: object): RequestState | undefined {
  return states.get(req);
}

/**
 * The caller of a request that a gate has accepted: `req.auth`, typed for every framework, and not what another
 * middleware may have assigned to it; after two gates that of the last one. `undefined` for any other request, and for one without a token that an optional
 * gate accepted.
 *
 * @param req - the request that the gate got: in Fastify `request.raw`
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http';
 * import { authenticate, authOf, problemHandler, requireScope } from 'tillgate';
 *
 * const gate = authenticate({ issuer: 'https://login.example.com', audience: 'https://api.example.com' });
 * const guard = requireScope('orders:read');
 * const refuse = problemHandler();
 * createServer((req, res) => {
 *   const respond = (error?: Error) => (error ? refuse(error, req, res, () => {}) : res.end(authOf(req)?.clientId ?? ''));
 *   gate(req, res, (error) => (error ? respond(error) : guard(req, res, respond)));
 * });
 * ```
 */
export function authOf(req: object): Auth | undefined {
  return stateOf(req)?.auth;
}

/**
 * A request as the gate reads it. One of the Fetch API (Next.js, Hono, Deno, Bun) has no connection: all of them count as one
 * site where places are shared.
 *
 * @throws TypeError when it is not a request
 */
export function asNodeRequest(req: GateRequest | Request): GateRequest {
  const { method, url, headers } = (req ?? {}) as Partial<Request>;
  if (isOfFetch(headers) && !('rawHeaders' in req) && typeof url === 'string') {
    const { pathname, search } = new URL(url, 'http://localhost');
    return { method, url: pathname + search, headers: Object.fromEntries(headers) } as GateRequest;
  }
  if (typeof headers === 'object' && headers !== null) return req as GateRequest;
  // Not the text of a string: it may be a token.
  const got = typeof req === 'string' ? 'a string' : describe(req);
  throw new TypeError(`verify(): expected a request of node:http or of the Fetch API, got ${got}`);
}

/** By its shape: to name `Headers` would load `fetch`, which few processes of node:http need. */
function isOfFetch(headers: unknown): headers is Headers {
  const { get, [Symbol.iterator]: iterate } = (headers ?? {}) as Partial<Headers>;
  return typeof get === 'function' && typeof iterate === 'function';
}

/** The path for logs: without tokens that a caller put into the URL by mistake. */
export function pathOf(req: GateRequest): string {
  return loggablePath(req.originalUrl ?? req.url ?? '');
}

/** The caller as far as it decides when its turn is. Behind a proxy that the app does not trust, all have the address of the proxy. */
export function callerOf({ ip, socket }: GateRequest): Caller {
  return { address: typeof ip === 'string' ? ip : socket?.remoteAddress, socket };
}

/** Not its connection: a session can outlive that of the request which opened it, as those of Socket.IO do. */
export function addressOf(req: GateRequest): Caller {
  return { address: callerOf(req).address };
}

/** Longer than this, a mount path with parameters can hold a token. */
const MAX_PLAIN_MOUNT = 64;

/** The route as it was declared, once Express knows it: `/v1/orders/:id`. */
export function declaredRoute(req: GateRequest): string | undefined {
  // Where it is absent, looking for it in all prototypes of a request takes 1 us.
  if (!Object.hasOwn(req, 'route')) return undefined;
  const { route, baseUrl = '' } = req;
  if (typeof route?.path !== 'string') return undefined;
  return (baseUrl.length > MAX_PLAIN_MOUNT ? loggablePath(baseUrl) : baseUrl) + route.path;
}

/** The route as it was declared, for messages to developers: `GET /v1/orders/:id`. */
export function routeOf(req: GateRequest): string {
  return `${req.method} ${declaredRoute(req) ?? pathOf(req)}`;
}

/** The route of a request under a name of which callers cannot make many: `GET /v1/orders/:id`. */
export function routeLabelOf(req: GateRequest, labels: RouteLabels): string {
  const own = declaredRoute(req) === undefined ? '' : req.route?.path;
  return labels.of(routeOf(req), own, true) as string;
}

/** The id of a request, if it has one that is a string or a number. */
export function requestIdOf(req: GateRequest): string | undefined {
  const id = Object.hasOwn(req, 'id') ? req.id : undefined;
  return typeof id === 'string' || typeof id === 'number' ? String(id) : undefined;
}

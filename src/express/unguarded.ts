import { ServerResponse } from 'node:http';
import { routeOf, stateOf } from './request';
import type { GateRequest, RequestState, Unguarded, Writers } from './request';
import { sendInternalError } from './respond';

/** Headers that describe the response that is replaced. */
const REPRESENTATION =
  /^(content-|etag$|last-modified$|location$|set-cookie$|transfer-encoding$|cache-control$|expires$)/;
const MAX_WARNED_ROUTES = 1_000;
/** The request states of the responses that are watched. */
const watched = new WeakMap<ServerResponse, RequestState>();
const warned = new WeakMap<object, Set<string>>();
const STRICTNESS: readonly Unguarded[] = ['allow', 'warn', 'refuse'];

/**
 * Watches for a 2xx response to a request that no guard allowed, because a route lacks its guard, and replaces it by a
 * 500 before any byte of it is sent.
 *
 * @param before - the state that an earlier gate opened: its methods stay in place and use this state; the stricter of
 * the two gates decides
 */
export function enforceGuards(res: ServerResponse, state: RequestState, before: RequestState | undefined): void {
  if (before && isStricter(before.unguarded, state.unguarded)) state.unguarded = before.unguarded;
  if (state.unguarded !== 'refuse') return;
  watched.set(res, state);
  if (before?.writers) {
    state.writers = before.writers;
    return;
  }
  state.writers = writersOf(res);
  res.writeHead = watchedWriteHead;
  res.write = watchedWrite;
  res.end = watchedEnd;
}

/** Reports a 2xx response to a request that no guard allowed, once per route. Call it after `next()`. */
export function warnUnguarded(res: ServerResponse, state: RequestState): void {
  if (state.allowed || state.unguarded !== 'warn') return;
  if (res.writableEnded) warnFinished.call(res);
  else res.on('finish', warnFinished);
}

/** One listener for all responses. The state is looked up, because another gate after this one decides instead. */
function warnFinished(this: ServerResponse): void {
  const req: GateRequest = this.req;
  const state = stateOf(req) as RequestState;
  if (!state.allowed && isSuccess(req, this, this.statusCode)) warnOnce(req, state);
}

function isStricter(one: Unguarded, other: Unguarded): boolean {
  return STRICTNESS.indexOf(one) > STRICTNESS.indexOf(other);
}

/** Whether a response gives the caller what was requested. */
function isSuccess(req: GateRequest, res: ServerResponse, status: number): boolean {
  // Express itself responds to OPTIONS with the methods of the route and nothing else: its Allow header tells.
  if (req.method === 'OPTIONS' && res.hasHeader('Allow')) return false;
  return status >= 200 && status < 300;
}

/** Most responses have the methods of their class: those need no copy. */
const PLAIN: Writers = pick(ServerResponse.prototype);

function writersOf(res: ServerResponse): Writers {
  const isPlain = res.writeHead === PLAIN.writeHead && res.write === PLAIN.write && res.end === PLAIN.end;
  return isPlain ? PLAIN : pick(res);
}

function pick({ writeHead, write, end }: Writers): Writers {
  return { writeHead, write, end };
}

// One function each for all responses, with the state in a WeakMap, so that a request allocates little.
const watchedWriteHead = watch('writeHead');
const watchedWrite = watch('write');
const watchedEnd = watch('end');

/** Responses that are inside `write` or `end`, which call `writeHead` themselves. */
const writing = new WeakSet<ServerResponse>();
/** Leaves `write` or `end` from `writeHead`: they cannot be called again before they have returned. */
const UNGUARDED = new Error('no guard allowed this response');

function watch<Name extends keyof Writers>(name: Name): ServerResponse[Name] {
  return function watchedWriter(this: ServerResponse, ...args: unknown[]): unknown {
    // Set together with this function.
    const state = watched.get(this) as RequestState;
    if (state.allowed || state.replaced) return send(this, state, name, args);
    const status = name === 'writeHead' ? (args[0] as number) : this.statusCode;
    if (isUnguarded(this, status)) {
      if (writing.has(this)) throw UNGUARDED;
      replaceResponse(this, state);
    }
    if (name === 'writeHead') return sendHead(this, state, args);
    if (this.headersSent) return send(this, state, name, args);
    return sendFirst(this, state, name, args);
  } as ServerResponse[Name];
}

/**
 * Middleware before the gate may set another status while the head is written. A 500 cannot replace a written head, but
 * Node has not sent it yet: the connection is closed instead.
 */
function sendHead(res: ServerResponse, state: RequestState, args: unknown[]): unknown {
  const result = send(res, state, 'writeHead', args);
  if (state.replaced || !isSuccess(res.req, res, res.statusCode)) return result;
  if (writing.has(res)) throw UNGUARDED;
  replaceResponse(res, state);
  return result;
}

/** The first `write` or `end`: middleware such as on-headers may change the status while it writes the head. */
function sendFirst(res: ServerResponse, state: RequestState, name: keyof Writers, args: unknown[]): unknown {
  const isOutermost = !writing.has(res);
  writing.add(res);
  try {
    return send(res, state, name, args);
  } catch (error) {
    if (error !== UNGUARDED || !isOutermost) throw error;
    replaceResponse(res, state);
    return send(res, state, name, args);
  } finally {
    if (isOutermost) writing.delete(res);
  }
}

function send(res: ServerResponse, state: RequestState, name: keyof Writers, args: unknown[]): unknown {
  const writers = state.replaced ? res : (state.writers as Writers);
  return Reflect.apply(writers[name], res, args);
}

function isUnguarded(res: ServerResponse, status: number): boolean {
  return !res.headersSent && isSuccess(res.req, res, status);
}

function replaceResponse(res: ServerResponse, state: RequestState): void {
  const req = res.req as GateRequest;
  state.replaced = true;
  // The methods of its class: those that middleware put over them may change this response, or send it too late.
  Object.assign(res, pick(Object.getPrototypeOf(res) as Writers));
  const message = 'a response was replaced by 500: no guard (requireScope() and the like) allowed this request';
  state.gate.logger.error({ route: routeOf(req) }, message);
  const headers = res.headersSent ? [] : res.getHeaderNames();
  for (const name of headers) if (REPRESENTATION.test(name)) res.removeHeader(name);
  sendInternalError(req, res);
  // The handler may go on writing its response: discard it, and call its callbacks.
  Object.assign(res, { writeHead: () => res, write: discard(true), end: discard(res) });
}

/** Ignores what is written and calls back, as a stream does whose reader has gone. */
function discard<Result>(result: Result): (...args: readonly unknown[]) => Result {
  return function discarded(...args) {
    const callback = args.at(-1);
    if (typeof callback === 'function') process.nextTick(callback);
    return result;
  };
}

function warnOnce(req: GateRequest, { gate: { logger } }: RequestState): void {
  const routes = warned.get(logger) ?? new Set();
  warned.set(logger, routes);
  const route = routeOf(req);
  if (routes.has(route) || routes.size >= MAX_WARNED_ROUTES) return;
  routes.add(route);
  logger.warn({ route }, 'a route responded without a guard such as requireScope(): every valid token reaches it');
}

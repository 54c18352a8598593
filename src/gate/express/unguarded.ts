import { ServerResponse } from 'node:http';
import { RouteLabels } from '../core/route-labels';
import { hasGuard } from './guard';
import { routeLabelOf, routeOf, stateOf, type GateRequest, type RequestState } from './request-state';
import { sendInternalError } from './respond';

/** Headers that describe the response that is replaced. */
const REPRESENTATION =
  /^(content-|etag$|last-modified$|location$|set-cookie$|transfer-encoding$|cache-control$|expires$)/;
const STRICTNESS: readonly RequestState['unguarded'][] = ['allow', 'warn', 'refuse'];

type Writers = Pick<ServerResponse, 'writeHead' | 'write' | 'end'>;

/** Most responses have the methods of their class: those need no copy. */
const CLASS_WRITERS: Writers = pick(ServerResponse.prototype);
/** The methods that a response had before it was watched, where they are not those of its class. */
const originals = new WeakMap<ServerResponse, Writers>();
/** The request states of the responses that are watched. */
const watched = new WeakMap<ServerResponse, RequestState>();
/** The responses inside their first `write` or `end`, and those that a 500 has replaced. */
const phases = new WeakMap<ServerResponse, 'writing' | 'replaced'>();
/** What each logger was told. */
const warned = new WeakMap<object, { readonly labels: RouteLabels; readonly lines: Set<string> }>();

/**
 * Continues with a request that a gate has decided about, and watches for a 2xx response that no guard allowed: because a route lacks
 * its guard, or because the app's error handler went on with a request that was refused. The strictest of all gates decides.
 */
export function watchGuards(res: ServerResponse, state: RequestState, proceed: () => void): void {
  for (const { unguarded } of state.earlier) {
    if (STRICTNESS.indexOf(unguarded) > STRICTNESS.indexOf(state.unguarded)) state.unguarded = unguarded;
  }
  if (state.unguarded === 'refuse') enforceGuards(res, state);
  proceed();
  if (state.allowed || state.unguarded !== 'warn') return;
  // Listeners cost time: most responses are written before `next()` returns.
  if (res.writableEnded) warnFinished.call(res);
  else res.on('finish', warnFinished);
}

/**
 * Replaces a 2xx by a 500 before any byte of it is sent. Where an earlier gate watches already, its methods stay in place and use
 * this state.
 */
function enforceGuards(res: ServerResponse, state: RequestState): void {
  const isWatched = watched.has(res);
  watched.set(res, state);
  if (isWatched) return;
  const isPlain =
    res.writeHead === CLASS_WRITERS.writeHead && res.write === CLASS_WRITERS.write && res.end === CLASS_WRITERS.end;
  if (!isPlain) originals.set(res, pick(res));
  res.writeHead = watchedWriteHead;
  res.write = watchedWrite;
  res.end = watchedEnd;
}

/** One listener for all responses. The state is looked up, because another gate after this one decides instead. */
function warnFinished(this: ServerResponse): void {
  const req: GateRequest = this.req;
  const state = stateOf(req) as RequestState;
  if (!state.allowed && isSuccess(req, this, this.statusCode)) warnOnce(req, state);
}

/** Whether a response gives the caller what was requested. */
function isSuccess(req: GateRequest, res: ServerResponse, status: number): boolean {
  // Express itself responds to OPTIONS with the methods of the route and nothing else: its Allow header tells.
  if (req.method === 'OPTIONS' && res.hasHeader('Allow')) return false;
  return status >= 200 && status < 300;
}

function pick({ writeHead, write, end }: Writers): Writers {
  return { writeHead, write, end };
}

// One function each for all responses, with the state in a WeakMap, so that a request allocates little.
const watchedWriteHead = watch('writeHead', writeHead);
const watchedWrite = watch('write', writeBody);
const watchedEnd = watch('end', writeBody);

function watch<Name extends keyof Writers>(name: Name, write: typeof writeBody): ServerResponse[Name] {
  return function watchedWriter(this: ServerResponse, ...args: unknown[]): unknown {
    const isAllowed = watched.get(this)?.allowed === true;
    return isAllowed || phases.get(this) === 'replaced' ? pass(this, name, args) : write(this, name, args);
  } as ServerResponse[Name];
}

/** Calls the method that a response had before, or that of its replacement. */
function pass(res: ServerResponse, name: keyof Writers, args: unknown[]): unknown {
  const writers = phases.get(res) === 'replaced' ? res : (originals.get(res) ?? CLASS_WRITERS);
  return Reflect.apply(writers[name], res, args);
}

/**
 * Checks the status before the head is written, and after: middleware before the gate may have set another one in the meantime.
 * A 500 cannot replace a written head, but Node has not sent it yet: the connection is closed instead.
 */
function writeHead(res: ServerResponse, name: keyof Writers, args: unknown[]): unknown {
  if (!res.headersSent && isSuccess(res.req, res, args[0] as number)) return replaceUnguarded(res, name, args);
  const result = pass(res, name, args);
  const isReplaced = phases.get(res) === 'replaced';
  return !isReplaced && isSuccess(res.req, res, res.statusCode) ? replaceUnguarded(res, name, args) : result;
}

/**
 * The first `write` or `end` writes the head too, by `writeHead`, where middleware may set the status: only then is it known
 * whether the response is a 2xx. `write` and `end` cannot be called again before they have returned, so `writeHead` leaves
 * them by an exception.
 */
function writeBody(res: ServerResponse, name: keyof Writers, args: unknown[]): unknown {
  if (res.headersSent || phases.get(res) === 'writing') return pass(res, name, args);
  if (isSuccess(res.req, res, res.statusCode)) return replaceUnguarded(res, name, args);
  phases.set(res, 'writing');
  try {
    return pass(res, name, args);
  } catch (error) {
    if (error !== UNGUARDED) throw error;
    phases.delete(res);
    return replaceUnguarded(res, name, args);
  } finally {
    if (phases.get(res) === 'writing') phases.delete(res);
  }
}

const UNGUARDED = new Error('no guard allowed this response');

function replaceUnguarded(res: ServerResponse, name: keyof Writers, args: unknown[]): unknown {
  if (phases.get(res) === 'writing') throw UNGUARDED;
  const req = res.req as GateRequest;
  phases.set(res, 'replaced');
  // The methods of its class: those that middleware put over them may change this response, or send it too late.
  Object.assign(res, pick(Object.getPrototypeOf(res) as Writers));
  const state = watched.get(res);
  const order =
    state?.allowed === undefined && hasGuard(req) ? '; its guard comes after the handler: put it before' : '';
  const message = 'a response was replaced by 500: no guard (requireScope() and the like) allowed this request';
  state?.enforcer.settings.logger.error({ route: routeOf(req) }, message + order);
  const headers = res.headersSent ? [] : res.getHeaderNames();
  for (const name of headers) if (REPRESENTATION.test(name)) res.removeHeader(name);
  sendInternalError(req, res);
  // The handler may go on writing its response: discard it, and call its callbacks.
  Object.assign(res, { writeHead: () => res, write: discard(true), end: discard(res) });
  return pass(res, name, args);
}

/** Ignores what is written and calls back, as a stream does whose reader has gone. */
function discard<Result>(result: Result): (...args: readonly unknown[]) => Result {
  return function discarded(...args) {
    const callback = args.at(-1);
    if (typeof callback === 'function') process.nextTick(callback);
    return result;
  };
}

function warnOnce(req: GateRequest, { enforcer, allowed }: RequestState): void {
  const { logger } = enforcer.settings;
  const { labels, lines } = warned.get(logger) ?? { labels: new RouteLabels(), lines: new Set<string>() };
  warned.set(logger, { labels, lines });
  const route = routeLabelOf(req, labels);
  const message = allowed === false ? REFUSED_GOT_2XX : hasGuard(req) ? LATE_GUARD : NO_GUARD;
  if (lines.has(message + route)) return;
  lines.add(message + route);
  logger.warn({ route }, message);
}

const NO_GUARD = 'a route responded without a guard such as requireScope(): every valid token reaches it';
const LATE_GUARD =
  'a route responded before its guard, which comes after the handler: put requireScope() and the like before the handler';
const REFUSED_GOT_2XX =
  'a refused request got a 2xx: the error handler responded so, or went on to a route without a guard such as requireScope()';

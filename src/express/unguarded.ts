import type { ServerResponse } from 'node:http';
import { routeOf } from './http';
import type { GateRequest } from './http';
import type { Passage } from './passage';
import { sendInternalError } from './respond';

/** Headers that describe the answer that is held back. */
const REPRESENTATION =
  /^(content-|etag$|last-modified$|location$|set-cookie$|transfer-encoding$|cache-control$|expires$)/;
const MAX_WARNED_ROUTES = 1_000;
const warned = new WeakMap<object, Set<string>>();

/**
 * Watches for a 2xx answer to a request that no guard allowed: a route somebody forgot to guard. `warn` reports each
 * such route once; `refuse` puts a 500 in its place before a byte of it has left.
 */
export function watchUnguarded(req: GateRequest, res: ServerResponse, passage: Passage, mode: 'warn' | 'refuse'): void {
  // eslint-disable-next-line @typescript-eslint/unbound-method -- called with the answer as `this` below
  const original = { writeHead: res.writeHead, write: res.write, end: res.end };
  let heldBack = false;

  function isUnguarded(status: number): boolean {
    // Express answers OPTIONS by itself, with the methods of the route and nothing else: its Allow header tells.
    const isMethodList = req.method === 'OPTIONS' && res.hasHeader('Allow');
    return !passage.allowed && !isMethodList && !res.headersSent && status >= 200 && status < 300;
  }

  function catchAnswer(status: number): void {
    if (heldBack || !isUnguarded(status)) return;
    if (mode === 'warn') return warnOnce(req, passage);
    heldBack = true;
    Object.assign(res, original);
    const message = 'an answer was held back: no requireScope() or requireClaim() allowed this request';
    passage.logger.error({ route: routeOf(req) }, message);
    for (const name of res.getHeaderNames()) if (REPRESENTATION.test(name)) res.removeHeader(name);
    sendInternalError(req, res);
    // The handler may go on writing what it believes to be the answer: it goes nowhere, and waits for nothing.
    Object.assign(res, { writeHead: () => res, write: discard(true), end: discard(res) });
  }

  function forward<Name extends 'writeHead' | 'write' | 'end'>(name: Name): ServerResponse[Name] {
    return function watched(this: ServerResponse, ...args: unknown[]): unknown {
      catchAnswer(name === 'writeHead' ? (args[0] as number) : res.statusCode);
      return heldBack ? Reflect.apply(res[name], res, args) : Reflect.apply(original[name], res, args);
    } as ServerResponse[Name];
  }

  res.writeHead = forward('writeHead');
  res.write = forward('write');
  res.end = forward('end');
}

/** Takes what is written and calls back, as a stream does whose reader has gone. */
function discard<Result>(result: Result): (...args: readonly unknown[]) => Result {
  return function discarded(...args) {
    const callback = args.at(-1);
    if (typeof callback === 'function') process.nextTick(callback);
    return result;
  };
}

function warnOnce(req: GateRequest, passage: Passage): void {
  const routes = warned.get(passage.logger) ?? new Set();
  warned.set(passage.logger, routes);
  const route = routeOf(req);
  if (routes.has(route) || routes.size >= MAX_WARNED_ROUTES) return;
  routes.add(route);
  passage.logger.warn(
    { route },
    'a route answered without requireScope() or requireClaim(): every valid token reaches it',
  );
}

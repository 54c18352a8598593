import { ServerResponse } from 'node:http';
import { routeOf } from './http';
import type { GateRequest } from './http';
import { passageOf } from './passage';
import type { Passage, Unguarded, Writers } from './passage';
import { sendInternalError } from './respond';

/** Headers that describe the answer that is held back. */
const REPRESENTATION =
  /^(content-|etag$|last-modified$|location$|set-cookie$|transfer-encoding$|cache-control$|expires$)/;
const MAX_WARNED_ROUTES = 1_000;
/** The passages of the requests whose answers are watched. */
const watchedAnswers = new WeakMap<ServerResponse, Passage>();
const warned = new WeakMap<object, Set<string>>();

/**
 * Watches for a 2xx answer to a request that no guard allowed, a route somebody forgot to guard, and puts a 500 in its
 * place before a byte of it has left. To be called before the answer is given.
 *
 * @param before - the passage that a gate in front opened: its watch goes on, with this passage to go by, and the
 * stricter of the two gates decides
 */
export function holdBackUnguarded(res: ServerResponse, passage: Passage, before: Passage | undefined): void {
  if (before && isStricter(before.unguarded, passage.unguarded)) passage.unguarded = before.unguarded;
  if (passage.unguarded !== 'refuse') return;
  watchedAnswers.set(res, passage);
  if (before?.writers) {
    passage.writers = before.writers;
    return;
  }
  passage.writers = writersOf(res);
  res.writeHead = watchedWriteHead;
  res.write = watchedWrite;
  res.end = watchedEnd;
}

/**
 * Reports a 2xx answer to a request that no guard allowed, once per route. To be called when the handlers have run:
 * where a guard was among them, nothing is left to do.
 */
export function warnUnguarded(req: GateRequest, res: ServerResponse, passage: Passage): void {
  if (passage.allowed || passage.unguarded !== 'warn') return;
  if (res.writableEnded) check();
  else res.once('finish', check);

  function check(): void {
    // A gate behind this one has taken over.
    if (passageOf(req) !== passage) return;
    if (!passage.allowed && isGranted(req, res, res.statusCode)) warnOnce(req, passage);
  }
}

function isStricter(one: Unguarded, other: Unguarded): boolean {
  const order: readonly Unguarded[] = ['allow', 'warn', 'refuse'];
  return order.indexOf(one) > order.indexOf(other);
}

/** Whether an answer gives the caller what was asked for. */
function isGranted(req: GateRequest, res: ServerResponse, status: number): boolean {
  // Express answers OPTIONS by itself, with the methods of the route and nothing else: its Allow header tells.
  if (req.method === 'OPTIONS' && res.hasHeader('Allow')) return false;
  return status >= 200 && status < 300;
}

/** Most answers have the methods of their class: those need no copy. */
const PLAIN: Writers = pick(ServerResponse.prototype);

function writersOf(res: ServerResponse): Writers {
  const isPlain = res.writeHead === PLAIN.writeHead && res.write === PLAIN.write && res.end === PLAIN.end;
  return isPlain ? PLAIN : pick(res);
}

function pick({ writeHead, write, end }: Writers): Writers {
  return { writeHead, write, end };
}

// One function each for all answers: what it needs to know stands in the passage, so that a request allocates little.
const watchedWriteHead = watch('writeHead');
const watchedWrite = watch('write');
const watchedEnd = watch('end');

function watch<Name extends keyof Writers>(name: Name): ServerResponse[Name] {
  return function watched(this: ServerResponse, ...args: unknown[]): unknown {
    // It was put there together with this function.
    const passage = watchedAnswers.get(this) as Passage;
    if (!passage.allowed) catchAnswer(this, passage, name === 'writeHead' ? (args[0] as number) : this.statusCode);
    const writers = passage.heldBack ? this : (passage.writers as Writers);
    return Reflect.apply(writers[name], this, args);
  } as ServerResponse[Name];
}

function catchAnswer(res: ServerResponse, passage: Passage, status: number): void {
  if (passage.heldBack || res.headersSent) return;
  const req = res.req as GateRequest;
  if (isGranted(req, res, status)) holdBack(req, res, passage);
}

function holdBack(req: GateRequest, res: ServerResponse, passage: Passage): void {
  passage.heldBack = true;
  Object.assign(res, passage.writers);
  const message = 'an answer was held back: no requireScope() or requireClaim() allowed this request';
  passage.gate.logger.error({ route: routeOf(req) }, message);
  for (const name of res.getHeaderNames()) if (REPRESENTATION.test(name)) res.removeHeader(name);
  sendInternalError(req, res);
  // The handler may go on writing what it believes to be the answer: it goes nowhere, and waits for nothing.
  Object.assign(res, { writeHead: () => res, write: discard(true), end: discard(res) });
}

/** Takes what is written and calls back, as a stream does whose reader has gone. */
function discard<Result>(result: Result): (...args: readonly unknown[]) => Result {
  return function discarded(...args) {
    const callback = args.at(-1);
    if (typeof callback === 'function') process.nextTick(callback);
    return result;
  };
}

function warnOnce(req: GateRequest, { gate: { logger } }: Passage): void {
  const routes = warned.get(logger) ?? new Set();
  warned.set(logger, routes);
  const route = routeOf(req);
  if (routes.has(route) || routes.size >= MAX_WARNED_ROUTES) return;
  routes.add(route);
  logger.warn({ route }, 'a route answered without requireScope() or requireClaim(): every valid token reaches it');
}

import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { classify, layersOf } from '../audit/app-routes';
import type { Layer } from '../audit/app-routes';
import type { ContractSettings } from './options';

/** What one request has run in an Express app; grows when it runs something later. */
export interface Trace {
  /** Names of the last handlers of routes that have run although another function has written the response. */
  readonly reached: () => readonly string[];
  /** The last handlers of routes that have run. */
  readonly ran: ReadonlySet<object>;
  /** Names of the earlier handlers of routes that have called `next()`. */
  readonly passed: readonly string[];
}

/** Of a server of which only responses can be seen. */
export const NO_TRACE: Trace = { reached: () => [], ran: new Set(), passed: [] };

type Handler = (req: IncomingMessage, res: unknown, next: (error?: unknown) => void) => unknown;

/** One run of a last handler. */
interface Run {
  readonly handler: Handler;
  /**
   * Whether it threw, or called `next()` with an error, before there was a response: then the response is its own. One
   * that calls `next()` before that prepares a request, as middleware does.
   */
  isOver: boolean;
}

interface Recording extends Trace {
  readonly ran: Set<object>;
  readonly passed: string[];
  readonly runs: Run[];
  readonly res: ServerResponse;
  readonly allowed: ReadonlySet<unknown>;
}

/** The body parsers of Express, which routes use with limits and types of their own. */
export const PARSERS: readonly string[] =
  'jsonParser urlencodedParser textParser rawParser corsMiddleware multerMiddleware'.split(' ');

/** The run of a last handler in which a function is called; `undefined`: in none. */
const running = new AsyncLocalStorage<Run | undefined>();

/** One spy per app, so that several lists of cases do not wrap each other's wrappers. */
const spies = new WeakMap<object, Spy>();

/** Spies on the handlers of every route of an Express app, except for Tillgate's guards and gates and `.all()`. */
export function spyOnHandlers(app: object): Spy {
  const known = spies.get(app) ?? new Spy(app);
  spies.set(app, known);
  return known;
}

/** Wraps the handlers of one app while it has users, and records what each followed request runs. */
class Spy {
  readonly #app: object;
  readonly #recordings = new WeakMap<IncomingMessage, Recording>();
  #users = 0;
  readonly #restore: (() => void)[] = [];

  constructor(app: object) {
    this.#app = app;
  }

  /** Traces this request from now on. */
  follow(request: IncomingMessage, res: ServerResponse, beforeGuard: ContractSettings['beforeGuard']): Trace {
    const runs: Run[] = [];
    let writer: Run | 'another function' | undefined;
    const writeHead = res.writeHead.bind(res) as (...args: unknown[]) => ServerResponse;
    res.writeHead = function noteWriter(...args: unknown[]) {
      writer ??= running.getStore() ?? 'another function';
      return writeHead(...args);
    };
    const recording: Recording = {
      runs,
      res,
      passed: [],
      ran: new Set(),
      allowed: new Set<unknown>([...PARSERS, ...beforeGuard]),
      reached: () => runs.filter((run) => !run.isOver && writer !== run).map(({ handler }) => nameOf(handler)),
    };
    this.#recordings.set(request, recording);
    return recording;
  }

  /** Wraps the handlers, until as many calls of `release()`. */
  install(): void {
    if (this.#users++ > 0) return;
    const routes = routesOf(layersOf(this.#app) ?? []);
    this.#restore.push(...routes.flatMap((route) => this.#wrapRoute(route)));
  }

  /** Restores the handlers when no other user is left. */
  release(): void {
    if (--this.#users > 0) return;
    for (const undo of this.#restore.splice(0)) undo();
  }

  /** Wraps the handlers of a route, and returns what restores each. */
  #wrapRoute({ stack }: NonNullable<Layer['route']>): readonly (() => void)[] {
    const layers = stack.filter((layer) => layer.method !== undefined && classify(layer.handle).kind === 'handler');
    return layers.map((layer) => {
      const { handle } = layer;
      const isLast = layer === layers.findLast(({ method }) => method === layer.method);
      const wrapped = layer as { handle: object };
      wrapped.handle = wrap(handle as Handler, isLast ? last : earlier, this.#recordings);
      return () => void (wrapped.handle = handle);
    });
  }
}

function wrap(handler: Handler, recorded: typeof last, recordings: WeakMap<IncomingMessage, Recording>): Handler {
  return function spied(req, res, next) {
    const recording = recordings.get(req);
    return (recording ? recorded(handler, recording) : handler)(req, res, next);
  };
}

/** An earlier handler lets a request go on when it calls `next()`: a guard that refuses does not. */
function earlier(handler: Handler, recording: Recording): Handler {
  return (req, res, next) =>
    handler(req, res, (error?: unknown) => {
      const isKnown = recording.allowed.has(handler) || recording.allowed.has(handler.name);
      if (!isError(error) && !isKnown) recording.passed.push(nameOf(handler));
      next(error);
    });
}

function last(handler: Handler, recording: Recording): Handler {
  const { ran, runs, res: response } = recording;
  const run: Run = { handler, isOver: false };
  const fail = (): void => void (run.isOver ||= !response.headersSent);
  ran.add(handler);
  runs.push(run);
  return (req, res, next) => {
    function callNext(error?: unknown): void {
      if (!response.headersSent && !isError(error)) recording.passed.push(nameOf(handler));
      fail();
      // What responds after it is another function, unless it is told of an error.
      running.run(isError(error) ? run : undefined, next, error);
    }
    try {
      const result = running.run(run, () => handler(req, res, callNext));
      if (result instanceof Promise) result.catch(fail);
      return result;
    } catch (error) {
      fail();
      throw error;
    }
  };
}

/** `next()` takes these two words as orders to skip. */
function isError(error: unknown): boolean {
  return error !== undefined && error !== null && error !== 'route' && error !== 'router';
}

function nameOf({ name }: Handler): string {
  return name || '(a function without a name)';
}

function routesOf(layers: readonly Layer[]): readonly NonNullable<Layer['route']>[] {
  return layers.flatMap(({ route, handle }) => (route ? [route] : routesOf(layersOf(handle) ?? [])));
}

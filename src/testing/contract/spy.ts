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
export const PARSERS: readonly string[] = [
  'jsonParser',
  'urlencodedParser',
  'textParser',
  'rawParser',
  'corsMiddleware',
  'multerMiddleware',
];

/** The run of a last handler in which a function is called; `undefined`: in none. */
const running = new AsyncLocalStorage<Run | undefined>();

/** One spy per app, so that several lists of cases do not wrap each other's wrappers. */
const spies = new WeakMap<object, ReturnType<typeof createSpy>>();

/** Spies on the handlers of every route of an Express app, except for Tillgate's guards and gates and `.all()`. */
export function spyOnHandlers(app: object): ReturnType<typeof createSpy> {
  const known = spies.get(app) ?? createSpy(app);
  spies.set(app, known);
  return known;
}

function createSpy(app: object) {
  const recordings = new WeakMap<IncomingMessage, Recording>();
  let users = 0;
  let restore: readonly (() => void)[] = [];

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

  function wrap(handler: Handler, isLast: boolean): Handler {
    return function spied(req, res, next) {
      const recording = recordings.get(req);
      if (!recording) return handler(req, res, next);
      return (isLast ? last : earlier)(handler, recording)(req, res, next);
    };
  }

  function wrapRoute({ stack }: NonNullable<Layer['route']>): readonly (() => void)[] {
    const layers = stack.filter((layer) => layer.method !== undefined && classify(layer.handle).kind === 'handler');
    return layers.map((layer) => {
      const { handle } = layer;
      const isLast = layer === layers.findLast(({ method }) => method === layer.method);
      const wrapped = layer as { handle: object };
      wrapped.handle = wrap(handle as Handler, isLast);
      return () => void (wrapped.handle = handle);
    });
  }

  return {
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
        ...{ runs, res, passed: [], ran: new Set() },
        allowed: new Set<unknown>([...PARSERS, ...beforeGuard]),
        reached: () => runs.filter((run) => !run.isOver && writer !== run).map(({ handler }) => nameOf(handler)),
      };
      recordings.set(request, recording);
      return recording;
    },
    /** Wraps the handlers, until as many calls of `release()`. */
    install() {
      if (users === 0) restore = routesOf(layersOf(app) ?? []).flatMap(wrapRoute);
      users += 1;
    },
    /** Restores the handlers when no other user is left. */
    release() {
      users -= 1;
      if (users > 0) return;
      for (const undo of restore) undo();
      restore = [];
    },
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

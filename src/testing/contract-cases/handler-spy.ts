import type { IncomingMessage } from 'node:http';
import { classify, layersOf } from '../../openapi/app-routes';
import type { Layer } from '../../openapi/app-routes';
import type { BeforeGuard } from './options';

/** Records which handlers of an app requests reach. */
type HandlerSpy = ReturnType<typeof createSpy>;

interface Recording {
  readonly reached: string[];
  readonly allowed: ReadonlySet<unknown>;
}

type Handler = (req: IncomingMessage, res: unknown, next: (error?: unknown) => void) => unknown;

/** The body parsers of Express, which routes use with limits and types of their own. */
const PARSERS: BeforeGuard = ['jsonParser', 'urlencodedParser', 'textParser', 'rawParser'];

/** One spy per app, so that several lists of cases do not wrap each other's wrappers. */
const spies = new WeakMap<object, HandlerSpy>();

/**
 * Spies on the handlers of every route of an Express app. The last handler of a route is reached when it is called, an
 * earlier one when it calls `next()`: a guard that refuses does not. Tillgate's guards and gates, body parsers and
 * `beforeGuard` do not count; neither does `.all()`, which may only prepare the other handlers.
 */
export function spyOnHandlers(app: object): HandlerSpy {
  const known = spies.get(app) ?? createSpy(app);
  spies.set(app, known);
  return known;
}

function createSpy(app: object) {
  const recordings = new WeakMap<IncomingMessage, Recording>();
  let users = 0;
  let restore: readonly (() => void)[] = [];

  function wrap(handler: Handler, isLast: boolean): Handler {
    function record(req: IncomingMessage): void {
      const recording = recordings.get(req);
      if (!recording || recording.allowed.has(handler) || recording.allowed.has(handler.name)) return;
      recording.reached.push(handler.name || '(a function without a name)');
    }
    return function spied(req, res, next) {
      if (isLast) record(req);
      return handler(req, res, function callNext(error?: unknown) {
        if (!isLast && (error === undefined || error === null)) record(req);
        next(error);
      });
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
    /** Records this request from now on: the returned list grows with every handler that it reaches. */
    follow(request: IncomingMessage, beforeGuard: BeforeGuard): readonly string[] {
      const reached: string[] = [];
      recordings.set(request, { reached, allowed: new Set<unknown>([...PARSERS, ...beforeGuard]) });
      return reached;
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

function routesOf(layers: readonly Layer[]): readonly NonNullable<Layer['route']>[] {
  return layers.flatMap(({ route, handle }) => (route ? [route] : routesOf(layersOf(handle) ?? [])));
}

import type { IncomingMessage } from 'node:http';
import { layersOf } from '../../openapi/express-layer';
import type { Layer } from '../../openapi/express-layer';
import { markOf } from '../../openapi/mark';

/** Functions that may run before a guard without harm: themselves, or their names. */
export type Harmless = readonly (string | ((...args: never[]) => unknown))[];

/** Sees which handlers of an app are reached. */
export interface Witness {
  /** From here on, what this request reaches is noted. */
  follow(this: void, request: IncomingMessage): Visit;
  /** Looks at the handlers for as long as something runs: they are as before afterwards. */
  during<Result>(this: void, run: () => Promise<Result>): Promise<Result>;
}

/** What one request has reached: handlers by name. */
export type Visit = string[];

type Handle = (req: IncomingMessage, res: unknown, next: (error?: unknown) => void) => unknown;

/** The body parsers of Express, which routes have for their own sizes and types. */
const PARSERS: Harmless = ['jsonParser', 'urlencodedParser', 'textParser', 'rawParser'];

/**
 * Stands beside the handlers of every route of an Express app. The last handler of a route is reached when it is called,
 * one before it when it lets a request pass: a guard that refuses does not. Tillgate's guards and gates, body parsers and
 * what is said to be harmless do not count; neither does `.all()`, which may be a prelude.
 */
export function witness(app: object, harmless: Harmless): Witness {
  const visits = new WeakMap<IncomingMessage, Visit>();
  const allowed = new Set<unknown>([...PARSERS, ...harmless]);
  let running = 0;
  let restore: () => void = () => {};

  function observe(handle: Handle, name: string, isLast: boolean): Handle {
    return function watchHandler(req, res, next) {
      const visit = visits.get(req);
      if (isLast) visit?.push(name);
      return handle(req, res, function passOn(error?: unknown) {
        if (!isLast && (error === undefined || error === null)) visit?.push(name);
        next(error);
      });
    };
  }

  function observeRoutes(): () => void {
    const undo = routesOf(layersOf(app) ?? []).flatMap(({ stack }) => {
      const handlers = stack.filter((layer) => layer.method !== undefined && markOf(layer.handle).kind === 'handler');
      return handlers.flatMap((layer) => {
        const { handle } = layer;
        const { name } = handle as Handle;
        if (allowed.has(handle) || allowed.has(name)) return [];
        const isLast = layer === handlers.findLast(({ method }) => method === layer.method);
        const observed = layer as { handle: object };
        observed.handle = observe(handle as Handle, name || '(a function without a name)', isLast);
        return [() => void (observed.handle = handle)];
      });
    });
    return () => {
      for (const each of undo) each();
    };
  }

  return {
    follow(request) {
      const visit: Visit = [];
      visits.set(request, visit);
      return visit;
    },
    async during(run) {
      if (running === 0) restore = observeRoutes();
      running += 1;
      try {
        return await run();
      } finally {
        running -= 1;
        if (running === 0) restore();
      }
    },
  };
}

function routesOf(layers: readonly Layer[]): readonly NonNullable<Layer['route']>[] {
  return layers.flatMap(({ route, handle }) => (route ? [route] : routesOf(layersOf(handle) ?? [])));
}

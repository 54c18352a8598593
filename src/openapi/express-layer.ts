import { METHODS } from 'node:http';

/** As much of Express's own layers as is needed to read routes: those of `router` 2 (Express 5) and of Express 4. */
export interface Layer {
  readonly handle: object;
  /** The method of a handler within a route; none for `.all()`. */
  readonly method?: string | undefined;
  readonly route?: { readonly path: RoutePath | readonly RoutePath[]; readonly stack: readonly Layer[] };
  /** `router` 2: whether it is mounted at `/`. */
  readonly slash?: boolean;
  /** `router` 2.3 and later: the path as it was given. */
  readonly rawPath?: unknown;
  /** Express 4. */
  readonly regexp?: RegExp & { readonly fast_slash?: boolean };
  readonly keys?: readonly { readonly name: string | number }[];
  readonly match?: (path: string) => unknown;
}

/** A path as it is given to Express. */
export type RoutePath = string | RegExp;

/** The part of a path that a layer takes, and what it reads from it. */
export interface LayerMatch {
  readonly path: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** The layers of an Express app or router; `undefined` for whatever else. */
export function layersOf(handle: object): readonly Layer[] | undefined {
  const { stack, set } = handle as { readonly stack?: unknown; readonly set?: unknown };
  if (Array.isArray(stack)) return stack as readonly Layer[];
  // Only an app has both: other functions are not asked for a router, because asking Express 4 for it throws.
  if (typeof handle !== 'function' || typeof set !== 'function' || !('handle' in handle)) return undefined;
  const router = '_router' in handle ? handle._router : routerOf(handle);
  return router === undefined ? [] : layersOf(router as object);
}

/** What stands in a route. `app.all()` leaves one handler for each method that there is: they are one handler here. */
export function handlersOf({ route }: Layer): readonly Layer[] {
  const stack = route?.stack ?? [];
  const methods = new Set(stack.map(({ method }) => method));
  if (!METHODS.every((method) => methods.has(method.toLowerCase()))) return stack;
  return stack.filter(({ method }) => method === 'get').map(({ handle }) => ({ handle }));
}

/** Matches a path with one layer, as its router would. */
export function matchLayer(layer: Layer, path: string): LayerMatch | undefined {
  let answer: unknown;
  try {
    answer = layer.match?.(path);
  } catch {
    return undefined;
  }
  if (answer === undefined || answer === false) return undefined;
  // Express 4 and the first releases of router 2 leave what they found on the layer.
  const { path: taken, params } = (answer === true ? layer : answer) as Partial<LayerMatch>;
  return { path: taken ?? '', params: params ?? {} };
}

/** The paths of a layer as they were given to `use()`; `undefined` when they cannot be read any more. */
export function mountPathsOf(layer: Layer): readonly RoutePath[] | undefined {
  const { slash, rawPath, regexp } = layer;
  if (slash || regexp?.fast_slash) return ['/'];
  if (regexp) return readExpression(regexp, layer.keys ?? []);
  return rawPath === undefined ? undefined : ([rawPath].flat() as RoutePath[]);
}

/** Express 4 keeps only the regular expression of a path: this takes it back to the path, where it is a simple one. */
function readExpression({ source }: RegExp, keys: NonNullable<Layer['keys']>): readonly string[] | undefined {
  const names = keys.map(({ name }) => String(name));
  const path = source
    .replace(/^\^/, '')
    .replace(/\\\/\?\(\?=\\\/\|\$\)$/, '')
    .replace(/\(\?:\\\/\((?:\[\^\/\]\+\?|\\d\+)\)\)/g, () => `/:${names.shift() ?? ''}`)
    .replace(/\\([/.-])/g, '$1');
  return names.length === 0 && /^(?:\/:?[\w.~-]+)+$/.test(path) ? [path] : undefined;
}

function routerOf(app: object): unknown {
  try {
    return (app as { readonly router?: unknown }).router;
  } catch {
    // An Express 4 app without routes.
    return undefined;
  }
}

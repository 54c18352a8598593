import { METHODS } from 'node:http';
import { requirementOf } from '../express/guard';
import { alternativesOf } from './requirement';
import type { Alternatives } from './requirement';

/** The members of Express's own layers that are read: those of `router` 2 (Express 5) and of Express 4. */
export interface Layer {
  readonly handle: object;
  /** The method of a handler within a route; `undefined` for `.all()`. */
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

/** What kind of middleware a function is. */
export type Classification =
  | { readonly kind: 'gate'; readonly optional: boolean }
  | { readonly kind: 'guard'; readonly requires: Alternatives }
  | { readonly kind: 'error handler' }
  | { readonly kind: 'handler' };

/** Classifies a middleware by the members of Tillgate's own, so that another copy of this package counts too. */
export function classify(handle: object): Classification {
  const { optional, ready, length } = handle as { optional?: unknown; ready?: unknown; length?: unknown };
  const requirement = requirementOf(handle);
  if (typeof optional === 'boolean' && typeof ready === 'function') return { kind: 'gate', optional };
  if (requirement) return { kind: 'guard', requires: alternativesOf(requirement) };
  return { kind: length === 4 ? 'error handler' : 'handler' };
}

/** The layers of an Express app or router; `undefined` for anything else. */
export function layersOf(handle: object): readonly Layer[] | undefined {
  const { stack, set } = handle as { readonly stack?: unknown; readonly set?: unknown };
  if (Array.isArray(stack)) return stack as readonly Layer[];
  // Only apps have both.
  if (typeof handle !== 'function' || typeof set !== 'function' || !('handle' in handle)) return undefined;
  const router = '_router' in handle ? handle._router : routerOf(handle);
  return router === undefined ? [] : layersOf(router as object);
}

function routerOf(app: object): unknown {
  try {
    return (app as { readonly router?: unknown }).router;
  } catch {
    // The getter of an Express 4 app throws.
    return undefined;
  }
}

/** The handlers of a route. `app.all()` makes one layer per method: they count as one handler. */
export function handlersOf({ route }: Layer): readonly Layer[] {
  const stack = route?.stack ?? [];
  const methods = new Set(stack.map(({ method }) => method));
  if (!METHODS.every((method) => methods.has(method.toLowerCase()))) return stack;
  return stack.filter(({ method }) => method === 'get').map(({ handle }) => ({ handle }));
}

interface PathMatch {
  /** The part of the path that a layer matches. */
  readonly path: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** Matches a path with one layer, as its router would. */
export function matchLayer(layer: Layer, path: string): PathMatch | undefined {
  let result: unknown;
  try {
    result = layer.match?.(path);
  } catch {
    return undefined;
  }
  if (result === undefined || result === false) return undefined;
  // Express 4 and the first releases of router 2 store the result on the layer.
  const { path: matched = '', params = {} } = (result === true ? layer : result) as Partial<PathMatch>;
  return { path: matched, params };
}

/** The paths of a layer as they were given to `use()`; `undefined` when they cannot be read any more. */
export function mountPathsOf(layer: Layer): readonly RoutePath[] | undefined {
  const { slash, rawPath, regexp } = layer;
  if (slash || regexp?.fast_slash) return ['/'];
  if (regexp) return readExpression(regexp, layer.keys ?? []);
  return rawPath === undefined ? undefined : ([rawPath].flat() as RoutePath[]);
}

/** Express 4 keeps only the regular expression of a path: recovers the path of a simple one. */
function readExpression({ source }: RegExp, keys: NonNullable<Layer['keys']>): readonly string[] | undefined {
  const names = keys.map(({ name }) => String(name));
  const path = source
    .replace(/^\^/, '')
    .replace(/\\\/\?\(\?=\\\/\|\$\)$/, '')
    .replace(/\(\?:\\\/\((?:\[\^\/\]\+\?|\\d\+)\)\)/g, () => `/:${names.shift() ?? ''}`)
    .replace(/\\([/.-])/g, '$1');
  return names.length === 0 && /^(?:\/:?[\w.~-]+)+$/.test(path) ? [path] : undefined;
}

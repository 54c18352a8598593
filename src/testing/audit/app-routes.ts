import { METHODS } from 'node:http';
import { attempt, requirementOf } from 'tillgate/internal';
import { bothOf } from '../openapi/document';
import type { Alternatives } from '../openapi/document';
import { isCatchAll, probesOf, shapeOf, templatesOf } from '../openapi/path-template';

/** A route as an app has it. */
export interface DescribedRoute {
  /** `ALL` for a route that accepts every method. */
  readonly method: string;
  /** As OpenAPI writes it: `/v1/orders/{id}`. */
  readonly path: string;
  /** What its guards require; no alternative without a guard. */
  readonly requires: Alternatives;
  /** What guards after its handler require: they have no effect. */
  readonly tooLate: Alternatives;
  /** The gate before the first guard and the handler. */
  readonly gate: 'none' | 'optional' | 'strict';
}

/** What can be read of an app. */
interface RoutesOfApp {
  readonly routes: readonly DescribedRoute[];
  /** Paths to which a middleware responds itself. */
  readonly served: readonly string[];
  /** Where routes cannot be read: `/admin`, or `(unreadable)/users`. */
  readonly unreadable: readonly string[];
}

/**
 * Reads the routes, guards and gates of an Express 4 or 5 app or router, including nested routers. Follows a request to
 * the handler of each route, so that the order counts as it does in Express.
 *
 * @param knownPaths - templates of the document, tried where Express keeps no mount path
 * @throws TypeError when `app` is neither an app nor a router
 */
export function describeRoutes(app: object, knownPaths: readonly string[] = []): RoutesOfApp {
  const layers = layersOf(app);
  if (!layers) throw new TypeError('expected an Express app or router: a function that express() or Router() made');
  const { routes: listed, served, hidden } = listRoutes(layers);
  const unreadable = hidden.flatMap(describeTemplates);
  const known = new Map<string, readonly LayerMatch[]>();
  function follow(path: string): readonly LayerMatch[] {
    const matches = known.get(path) ?? matchLayers(layers ?? [], path);
    known.set(path, matches);
    return matches;
  }
  const routes = listed.flatMap((route) => {
    const described = describeRoute(follow, route, knownPaths);
    if (!described) unreadable.push(...describeTemplates(route.templates));
    return described ?? [];
  });
  // `.all()` along with single methods prepares them, or responds with 405 after them.
  const named = new Set(routes.filter(({ method }) => method !== 'ALL').map(({ path }) => shapeOf(path)));
  const visible = routes.filter(({ method, path }) => method !== 'ALL' || !named.has(shapeOf(path)));
  return { routes: visible, served, unreadable };
}

/** How an app handles an operation. */
export interface Way {
  readonly handler: object;
  /** What a request passes through before it, without guards. */
  readonly before: readonly object[];
}

/** Finds how an app handles an operation, whose path is as OpenAPI writes it; `undefined` where no handler can be found. */
export function wayTo(app: object, method: string, path: string): Way | undefined {
  for (const { path: probe } of probesOf(path)) {
    const way = matchLayers(layersOf(app) ?? [], probe).filter(
      ({ layer, classification: { kind } }) =>
        kind !== 'error handler' && (layer.method === undefined || layer.method === method.toLowerCase()),
    );
    const isHandler = ({ layer, classification: { kind } }: LayerMatch): boolean =>
      layer.method !== undefined && kind === 'handler';
    const first = way.find(isHandler);
    const handler = way.findLast((one) => isHandler(one) && one.route === first?.route);
    if (!handler) continue;
    const passed = way.slice(0, way.indexOf(handler));
    const before = passed.filter(({ classification: { kind } }) => kind !== 'guard' && kind !== 'trial');
    return { handler: handler.layer.handle, before: before.map(({ layer }) => layer.handle) };
  }
  return undefined;
}

/** What a request with this path passes through, whatever its method. */
type Follow = (path: string) => readonly LayerMatch[];

/** `undefined` when no request is found that reaches the route. */
function describeRoute(
  follow: Follow,
  { layer: route, templates, catchAll }: AppRoute,
  knownPaths: readonly string[],
): readonly DescribedRoute[] | undefined {
  const { complete, texts } = templates;
  const endsLikeRoute = (path: string): boolean => texts.some((end) => shapeOf(path).endsWith(shapeOf(end)));
  const paths = complete ? texts : knownPaths.filter(endsLikeRoute);
  const requests = paths.flatMap((path) => requestsTo(follow, route, path, complete).map((way) => ({ path, way })));
  if (requests.length === 0) return undefined;
  const methods = new Set(handlersOf(route).map(({ method }) => method));
  const described = requests.flatMap(({ path, way }) =>
    [...methods].flatMap((method) => {
      if (catchAll && method === undefined) return [];
      const matching = way.filter(({ layer }) => layer.method === undefined || layer.method === method);
      return describeRequest(matching, route, (method ?? 'all').toUpperCase(), path || '/');
    }),
  );
  return [...new Map(described.map((one) => [JSON.stringify(one), one])).values()];
}

/** What requests to the route pass through: one entry, or one per kind of value if a guard depends on a parameter. */
function requestsTo(follow: Follow, route: Layer, path: string, complete: boolean): readonly (readonly LayerMatch[])[] {
  const requests: (readonly LayerMatch[])[] = [];
  for (const { path: probe, values } of probesOf(path)) {
    const way = follow(probe);
    const arrival = way.find((one) => one.route === route);
    // A path from the document counts only if its parameters are those of Express.
    if (!arrival || !(complete || arrival.captured.every((value) => values.includes(String(value))))) continue;
    requests.push(way);
    const dependsOnValues = ({ classification: { kind }, route: own, matched }: LayerMatch): boolean =>
      own !== route && (kind === 'gate' || kind === 'guard') && values.some((value) => matched.includes(value));
    if (!way.some(dependsOnValues)) break;
  }
  return requests;
}

function describeRequest(
  way: readonly LayerMatch[],
  route: Layer,
  method: string,
  path: string,
): readonly DescribedRoute[] {
  const own = way.filter((one) => one.route === route && one.classification.kind === 'handler');
  // `.all()` after the handler of a method is for the other methods.
  const handler = own.findLast(({ layer }) => layer.method !== undefined) ?? own.at(-1);
  // A route of guards only prepares the routes after it.
  if (!handler) return [];
  const position = way.indexOf(handler);
  const before = way.slice(0, position);
  return [{ method, path, requires: required(before), tooLate: required(way.slice(position)), gate: gateOf(before) }];
}

function required(way: readonly LayerMatch[]): Alternatives {
  const all = way.flatMap(({ classification: one }) => (one.kind === 'guard' ? [one.requires] : []));
  return all.length === 0 ? [] : all.reduce(bothOf);
}

function gateOf(before: readonly LayerMatch[]): DescribedRoute['gate'] {
  const firstGuard = before.findIndex(({ classification }) => classification.kind === 'guard');
  const beforeGuard = firstGuard === -1 ? before : before.slice(0, firstGuard);
  const gates = beforeGuard.flatMap(({ classification: one }) => (one.kind === 'gate' ? [one] : []));
  if (gates.length === 0) return 'none';
  return gates.every(({ optional }) => optional) ? 'optional' : 'strict';
}

function describeTemplates({ complete, texts }: Templates): readonly string[] {
  return texts.map((text) => (complete ? text : `(unreadable)${text}`));
}

/** A route of an app, with the paths that lead to it. */
interface AppRoute {
  readonly layer: Layer;
  readonly templates: Templates;
  readonly catchAll: boolean;
}

/** Paths as OpenAPI writes them. */
interface Templates {
  /** `false`: only their ends are known, because a mount path cannot be read. */
  readonly complete: boolean;
  readonly texts: readonly string[];
}

/** Lists routes, also of nested routers; paths that a middleware serves; and mounted apps, whose routes are hidden. */
function listRoutes(layers: readonly Layer[]) {
  const [routes, served, hidden]: [AppRoute[], string[], Templates[]] = [[], [], []];

  function walk(level: readonly Layer[], mount: Templates): void {
    for (const layer of level) {
      const { route, handle } = layer;
      const legacy = layer.regexp !== undefined;
      const nested = layersOf(handle);
      const { name, serves = [] } = handle as { readonly name?: string; readonly serves?: readonly string[] };
      if (route) {
        for (const path of [route.path].flat()) {
          routes.push({ layer, templates: join(mount, [path], legacy), catchAll: isCatchAll(path) });
        }
      } else if (nested) walk(nested, join(mount, mountPathsOf(layer), legacy));
      else if (name === 'mounted_app') hidden.push(join(mount, mountPathsOf(layer), legacy));
      else served.push(...serves);
    }
  }

  walk(layers, { complete: true, texts: [''] });
  return { routes, served, hidden };
}

function join(mount: Templates, paths: readonly (string | RegExp)[] | undefined, legacy: boolean): Templates {
  const texts = paths?.map((path) => templatesOf(path, legacy));
  if (!texts || texts.includes(undefined)) return { complete: false, texts: [''] };
  const ends = texts.flatMap((each) => each ?? []);
  return { complete: mount.complete, texts: mount.texts.flatMap((start) => ends.map((end) => start + end)) };
}

/** A middleware that a request passes through. */
interface LayerMatch {
  readonly layer: Layer;
  readonly classification: ReturnType<typeof classify>;
  /** The route that it belongs to; `undefined` for middleware of a whole router. */
  readonly route: Layer | undefined;
  /** Values of path parameters up to here. */
  readonly captured: readonly unknown[];
  /** The matched part of the path. */
  readonly matched: string;
}

/**
 * Lists the middleware that a request with this path passes through, in order, without running anything: Express's own
 * layers do the matching. Assumes that every handler calls `next()`, and leaves the method open.
 */
function matchLayers(
  layers: readonly Layer[],
  path: string,
  before: Pick<LayerMatch, 'captured' | 'matched'> = { captured: [], matched: '' },
): readonly LayerMatch[] {
  return layers.flatMap((layer) => {
    const match = matchLayer(layer, path);
    if (!match) return [];
    // Parameters with a number are groups of a regular expression.
    const named = Object.entries(match.params).filter(([name]) => !/^\d+$/.test(name));
    const captured = [...before.captured, ...named.flatMap(([, value]) => value)];
    const here = { captured, matched: before.matched + match.path };
    const nested = layersOf(layer.handle);
    if (nested) return matchLayers(nested, `/${path.slice(match.path.length).replace(/^\//, '')}`, here);
    const inner = layer.route ? handlersOf(layer) : [layer];
    const route = layer.route && layer;
    return inner.map((one) => ({ layer: one, classification: classify(one.handle), route, ...here }));
  });
}

/** The members of Express's own layers that are read: those of `router` 2 (Express 5) and of Express 4. */
export interface Layer {
  readonly handle: object;
  /** The method of a handler within a route; `undefined` for `.all()`. */
  readonly method?: string | undefined;
  readonly route?: { readonly path: string | RegExp | readonly (string | RegExp)[]; readonly stack: readonly Layer[] };
  /** `router` 2: whether it is mounted at `/`. */
  readonly slash?: boolean;
  /** `router` 2.3 and later: the path as it was given. */
  readonly rawPath?: unknown;
  /** Express 4. */
  readonly regexp?: RegExp & { readonly fast_slash?: boolean };
  readonly keys?: readonly { readonly name: string | number }[];
  readonly match?: (path: string) => unknown;
}

/** Classifies a middleware by the members of Tillgate's own, so that another copy of this package counts too. */
export function classify(
  handle: object,
):
  | { readonly kind: 'gate'; readonly optional: boolean }
  | { readonly kind: 'guard'; readonly requires: Alternatives }
  | { readonly kind: 'error handler' | 'handler' | 'trial' } {
  const { optional, ready, length } = handle as { optional?: unknown; ready?: unknown; length?: unknown };
  const requirement = requirementOf(handle);
  // How reportOnly() marks a middleware, also one of another copy of the package.
  if (Object.hasOwn(handle, Symbol.for('tillgate.trial'))) return { kind: 'trial' };
  if (typeof optional === 'boolean' && typeof ready === 'function') return { kind: 'gate', optional };
  if (requirement) return { kind: 'guard', requires: alternativesOf(requirement) };
  return { kind: length === 4 ? 'error handler' : 'handler' };
}

/** The alternatives that satisfy a guard; one for a claim accepts any scopes. */
function alternativesOf(requirement: NonNullable<ReturnType<typeof requirementOf>>): Alternatives {
  if ('anyOf' in requirement) return requirement.anyOf.map((scope) => [scope]);
  return 'allOf' in requirement ? [requirement.allOf] : [[]];
}

/** The layers of an Express app or router; `undefined` for anything else. */
export function layersOf(handle: object): readonly Layer[] | undefined {
  const { stack, set } = handle as { readonly stack?: unknown; readonly set?: unknown };
  if (Array.isArray(stack)) return stack as readonly Layer[];
  // Only apps have both.
  if (typeof handle !== 'function' || typeof set !== 'function' || !('handle' in handle)) return undefined;
  // The getter of an Express 4 app throws.
  const router = '_router' in handle ? handle._router : attempt(() => (handle as { router?: unknown }).router);
  return router === undefined ? [] : layersOf(router as object);
}

/** The handlers of a route. `app.all()` makes one layer per method: they count as one handler. */
function handlersOf({ route }: Layer): readonly Layer[] {
  const stack = route?.stack ?? [];
  const methods = new Set(stack.map(({ method }) => method));
  if (!METHODS.every((method) => methods.has(method.toLowerCase()))) return stack;
  return stack.filter(({ method }) => method === 'get').map(({ handle }) => ({ handle }));
}

/** Matches a path with one layer, as its router would: the part that it matches, and the parameters in it. */
function matchLayer(layer: Layer, path: string) {
  const result = attempt(() => layer.match?.(path));
  if (result === undefined || result === false) return undefined;
  // Express 4 and the first releases of router 2 store the result on the layer.
  const { path: matched = '', params = {} } = (result === true ? layer : result) as {
    readonly path?: string;
    readonly params?: Readonly<Record<string, unknown>>;
  };
  return { path: matched, params };
}

/** The paths of a layer as they were given to `use()`; `undefined` when they cannot be read any more. */
function mountPathsOf(layer: Layer): readonly (string | RegExp)[] | undefined {
  const { slash, rawPath, regexp } = layer;
  if (slash || regexp?.fast_slash) return ['/'];
  if (regexp) return readExpression(regexp, layer.keys ?? []);
  return rawPath === undefined ? undefined : ([rawPath].flat() as (string | RegExp)[]);
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

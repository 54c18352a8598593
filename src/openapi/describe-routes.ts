import { encounters } from './encounters';
import type { Encounter } from './encounters';
import { handlersOf, layersOf } from './express-layer';
import type { Layer } from './express-layer';
import { probesOf, shapeOf } from './probe';
import { combine } from './requirement';
import type { Alternatives } from './requirement';
import { routeSites } from './route-site';
import type { RouteSite, Templates } from './route-site';

/** A route as it stands in an app. */
export interface DescribedRoute {
  /** `ALL` for a route that answers every method. */
  readonly method: string;
  /** As OpenAPI writes it: `/v1/orders/{id}`. */
  readonly path: string;
  /** What its guards ask for; no alternative when nothing guards it. */
  readonly requires: Alternatives;
  /** What guards ask for that stand behind its handler, where they guard nothing. */
  readonly tooLate: Alternatives;
  /** What authenticates the caller before the first guard and the handler. */
  readonly gate: 'none' | 'optional' | 'strict';
}

/** What can be said about the routes of an app. */
export interface RouteDescription {
  readonly routes: readonly DescribedRoute[];
  /** Paths that a middleware answers by itself. */
  readonly served: readonly string[];
  /** Where something stands that cannot be looked into: `/admin`, or `(unreadable)/users`. */
  readonly unreadable: readonly string[];
}

/** Options of {@link describeRoutes}. */
export interface DescribeRoutesOptions {
  /** Where a router is mounted: `/v1`. Default: at the root. */
  readonly mountedAt?: string | undefined;
  /** Templates that may be meant where Express has kept none: those of the document. */
  readonly knownPaths?: readonly string[];
}

/**
 * Reads the routes, guards and gates of an Express 4 or 5 app or router, nested routers included: what is really there,
 * whoever wrote it. For each route a request is followed up to its handler, so that order counts as it does in Express.
 *
 * @throws TypeError when it is no app and no router
 */
export function describeRoutes(app: object, options: DescribeRoutesOptions = {}): RouteDescription {
  const layers = layersOf(app);
  if (!layers) throw new TypeError('expected an Express app or router: a function that express() or Router() made');
  const { mountedAt = '', knownPaths = [] } = options;
  const { sites, served, hidden } = routeSites(layers, mountedAt);
  const unreadable = hidden.flatMap(show);
  const follow = memoize((path: string) => encounters(layers, path.slice(mountedAt.length) || '/'));
  const routes = sites.flatMap((site) => {
    const found = describeSite(follow, site, knownPaths);
    if (!found) unreadable.push(...show(site.templates));
    return found ?? [];
  });
  return { routes: withoutSpareAll(routes), served, unreadable };
}

/** What a request with this path meets, whatever its method. */
type Follow = (path: string) => readonly Encounter[];

/** `undefined` when no request can be thought of that reaches the route. */
function describeSite(
  follow: Follow,
  { route, templates, catchAll }: RouteSite,
  knownPaths: readonly string[],
): readonly DescribedRoute[] | undefined {
  const methods = new Set(handlersOf(route).map(({ method }) => method));
  const { complete, texts } = templates;
  const paths = complete ? texts : knownPaths.filter((path) => texts.some((end) => endsWith(path, end)));
  const ways = paths.flatMap((path) => waysTo(follow, route, path, complete).map((way) => ({ path, way })));
  if (ways.length === 0) return undefined;
  const found = ways.flatMap(({ path, way }) =>
    [...methods].flatMap((method) => {
      if (catchAll && method === undefined) return [];
      const met = way.filter(({ layer }) => layer.method === undefined || layer.method === method);
      return describeWay(met, route, (method ?? 'all').toUpperCase(), path || '/');
    }),
  );
  return withoutRepeats(found);
}

/**
 * What requests meet that reach the route: one way, or one for each kind of value that its parameters take, where a
 * guard on a path with a pattern of its own may stand before some of them only.
 */
function waysTo(follow: Follow, route: Layer, path: string, complete: boolean): readonly (readonly Encounter[])[] {
  const ways: (readonly Encounter[])[] = [];
  for (const { path: probe, values } of probesOf(path)) {
    const way = follow(probe);
    const arrival = way.find((one) => one.route === route);
    // A path that was guessed has to be read as the document means it: a parameter of Express is one there too.
    if (!arrival || !(complete || arrival.captured.every((value) => values.includes(String(value))))) continue;
    ways.push(way);
    if (!way.some((one) => one.route !== route && dependsOn(one, values))) break;
  }
  return ways;
}

function dependsOn({ mark, taken }: Encounter, values: readonly string[]): boolean {
  return (mark.kind === 'gate' || mark.kind === 'guard') && values.some((value) => taken.includes(value));
}

function describeWay(way: readonly Encounter[], route: Layer, method: string, path: string): readonly DescribedRoute[] {
  const own = way.filter((one) => one.route === route && one.mark.kind === 'handler');
  // `.all()` behind the handler of a method answers the other methods.
  const handler = own.findLast(({ layer }) => layer.method !== undefined) ?? own.at(-1);
  // Guards without a handler are a prelude to the routes after them.
  if (!handler) return [];
  const [before, after] = [way.slice(0, way.indexOf(handler)), way.slice(way.indexOf(handler))];
  const requires = combine(before.flatMap(({ mark }) => (mark.kind === 'guard' ? [mark.requirement] : [])));
  const tooLate = combine(after.flatMap(({ mark }) => (mark.kind === 'guard' ? [mark.requirement] : [])));
  return [{ method, path, requires, tooLate, gate: gateOf(before) }];
}

function gateOf(before: readonly Encounter[]): DescribedRoute['gate'] {
  const firstGuard = before.findIndex(({ mark }) => mark.kind === 'guard');
  const gates = before
    .slice(0, firstGuard === -1 ? undefined : firstGuard)
    .flatMap(({ mark }) => (mark.kind === 'gate' ? [mark] : []));
  if (gates.length === 0) return 'none';
  return gates.every(({ optional }) => optional) ? 'optional' : 'strict';
}

/** `.all()` beside handlers of single methods prepares them, or answers 405 behind them. */
function withoutSpareAll(routes: readonly DescribedRoute[]): readonly DescribedRoute[] {
  const named = new Set(routes.filter(({ method }) => method !== 'ALL').map(({ path }) => shapeOf(path)));
  return routes.filter(({ method, path }) => method !== 'ALL' || !named.has(shapeOf(path)));
}

function withoutRepeats(routes: readonly DescribedRoute[]): readonly DescribedRoute[] {
  return [...new Map(routes.map((route) => [JSON.stringify(route), route])).values()];
}

function memoize<Value>(compute: (key: string) => Value): (key: string) => Value {
  const known = new Map<string, Value>();
  return function remember(key) {
    const value = known.get(key) ?? compute(key);
    known.set(key, value);
    return value;
  };
}

function endsWith(path: string, end: string): boolean {
  return shapeOf(path).endsWith(shapeOf(end));
}

function show({ complete, texts }: Templates): readonly string[] {
  return texts.map((text) => (complete ? text : `(unreadable)${text}`));
}

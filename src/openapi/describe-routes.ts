import { handlersOf, layersOf } from './express-layer';
import type { Layer } from './express-layer';
import { probesOf, shapeOf } from './path-template';
import { bothOf } from './requirement';
import type { Alternatives } from './requirement';
import { listRoutes, matchLayers } from './traverse';
import type { AppRoute, LayerMatch, Templates } from './traverse';

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

/** The routes of an app. */
export interface RouteDescription {
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
 * @param mountedAt - mount path of a router: `/v1`
 * @param knownPaths - templates of the document, tried where Express keeps no mount path
 * @throws TypeError when `app` is neither an app nor a router
 */
export function describeRoutes(app: object, mountedAt = '', knownPaths: readonly string[] = []): RouteDescription {
  const layers = layersOf(app);
  if (!layers) throw new TypeError('expected an Express app or router: a function that express() or Router() made');
  const { routes: listed, served, hidden } = listRoutes(layers, mountedAt);
  const unreadable = hidden.flatMap(describeTemplates);
  const known = new Map<string, readonly LayerMatch[]>();
  function follow(path: string): readonly LayerMatch[] {
    const matches = known.get(path) ?? matchLayers(layers ?? [], path.slice(mountedAt.length) || '/');
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

/**
 * What requests that reach the route pass through: one entry, or one for each kind of parameter value when a guard on a
 * path with a pattern of its own guards only some of them.
 */
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

/** A route has more than these only where its mount path has parameters. */
const MAX_PREFIXES = 40;
/** More than an API has, and few enough that a metrics SDK keeps a series for each label and outcome. */
const MAX_LABELS = 300;

/**
 * Names of routes, for what lasts longer than a request: metrics, warnings that are logged once, lines that are counted. A router
 * mounted at `/shops/:shop` has as many prefixes as callers think of, so a route with too many is named by `*` and its own path.
 */
export class RouteLabels {
  readonly #labels = new Set<string>();
  readonly #prefixes = new Map<string, number>();

  /**
   * @param route - with its prefix: `/shops/17/orders`
   * @param own - the path of the route as it was declared, with which `route` ends: `/orders`
   * @param mayAdd - whether the request may make a new label
   * @returns `undefined` where the label is unknown and must not be added
   */
  of(route: string, own: unknown, mayAdd: boolean): string | undefined {
    if (this.#labels.has(route)) return route;
    const path = typeof own === 'string' && route.endsWith(own) ? own : '';
    const prefixes = this.#prefixes.get(path) ?? 0;
    const isFull = prefixes >= MAX_PREFIXES || this.#labels.size >= MAX_LABELS;
    const label = isFull ? `*${path}` : route;
    if (this.#labels.has(label)) return label;
    if (!mayAdd) return undefined;
    this.#labels.add(label);
    if (!isFull) this.#prefixes.set(path, prefixes + 1);
    return label;
  }
}

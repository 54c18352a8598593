import { classify, handlersOf, layersOf, matchLayer, mountPathsOf } from './express-layer';
import type { Classification, Layer, RoutePath } from './express-layer';
import { isCatchAll, templatesOf } from './path-template';

/** A route of an app, with the paths that lead to it. */
export interface AppRoute {
  readonly layer: Layer;
  readonly templates: Templates;
  readonly catchAll: boolean;
}

/** Paths as OpenAPI writes them. */
export interface Templates {
  /** `false`: only their ends are known, because a mount path cannot be read. */
  readonly complete: boolean;
  readonly texts: readonly string[];
}

/** The readable part of an app. */
export interface AppRoutes {
  readonly routes: readonly AppRoute[];
  /** Paths to which a middleware responds itself. */
  readonly served: readonly string[];
  /** Mounted apps: Express hides their routes. */
  readonly hidden: readonly Templates[];
}

/** Lists the routes of an app or router, including those of nested routers. */
export function listRoutes(layers: readonly Layer[], mountedAt: string): AppRoutes {
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

  walk(layers, { complete: true, texts: [mountedAt] });
  return { routes, served, hidden };
}

function join(mount: Templates, paths: readonly RoutePath[] | undefined, legacy: boolean): Templates {
  const texts = paths?.map((path) => templatesOf(path, legacy));
  if (!texts || texts.includes(undefined)) return { complete: false, texts: [''] };
  const ends = texts.flatMap((each) => each ?? []);
  return { complete: mount.complete, texts: mount.texts.flatMap((start) => ends.map((end) => start + end)) };
}

/** A middleware that a request passes through. */
export interface LayerMatch {
  readonly layer: Layer;
  readonly classification: Classification;
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
export function matchLayers(
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

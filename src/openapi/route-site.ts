import { layersOf, mountPathsOf } from './express-layer';
import type { Layer, RoutePath } from './express-layer';
import { servedPathsOf } from './mark';
import { isCatchAll, templatesOf } from './path-template';

/** A route of an app, with the addresses at which it stands. */
export interface RouteSite {
  readonly route: Layer;
  readonly templates: Templates;
  readonly catchAll: boolean;
}

/** Addresses as OpenAPI writes them. */
export interface Templates {
  /** Whether they are complete; else only their ends are known, behind something that cannot be read. */
  readonly complete: boolean;
  readonly texts: readonly string[];
}

/** What stands in an app, as far as it can be read. */
export interface RouteSites {
  readonly sites: readonly RouteSite[];
  /** Paths that a middleware answers by itself. */
  readonly served: readonly string[];
  /** Apps that are mounted in this one: Express hides what is in them. */
  readonly hidden: readonly Templates[];
}

/** Lists the routes of an app or router, those of nested routers included. */
export function routeSites(layers: readonly Layer[], mountedAt: string): RouteSites {
  const [sites, served, hidden]: [RouteSite[], string[], Templates[]] = [[], [], []];

  function walk(level: readonly Layer[], before: Templates): void {
    for (const layer of level) {
      const legacy = layer.regexp !== undefined;
      if (layer.route) {
        for (const path of [layer.route.path].flat()) {
          const templates = join(before, [path], legacy);
          sites.push({ route: layer, templates, catchAll: isCatchAll(path) });
        }
        continue;
      }
      const nested = layersOf(layer.handle);
      const opaque = (layer.handle as { readonly name?: string }).name === 'mounted_app';
      if (nested) walk(nested, join(before, mountPathsOf(layer), legacy));
      else if (opaque) hidden.push(join(before, mountPathsOf(layer), legacy));
      else served.push(...servedPathsOf(layer.handle));
    }
  }

  walk(layers, { complete: true, texts: [mountedAt] });
  return { sites, served, hidden };
}

function join(before: Templates, paths: readonly RoutePath[] | undefined, legacy: boolean): Templates {
  const texts = paths?.map((path) => templatesOf(path, legacy));
  if (!texts || texts.includes(undefined)) return { complete: false, texts: [''] };
  const after = texts.flatMap((each) => each ?? []);
  return { complete: before.complete, texts: before.texts.flatMap((start) => after.map((end) => start + end)) };
}

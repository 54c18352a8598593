import { handlersOf, layersOf, matchLayer } from './express-layer';
import type { Layer } from './express-layer';
import { markOf } from './mark';
import type { Mark } from './mark';

/** Something that a request meets on its way through an app. */
export interface Encounter {
  readonly layer: Layer;
  readonly mark: Mark;
  /** The route that it stands in; `undefined` for what is used by a whole router. */
  readonly route: Layer | undefined;
  /** Values that were read from the path up to here. */
  readonly captured: readonly unknown[];
}

/**
 * Follows a request through routers without running anything: Express's own layers say which of them it would meet, in
 * which order. What would answer lets it pass here, so that what stands behind is seen too; the method is left open.
 */
export function encounters(
  layers: readonly Layer[],
  path: string,
  captured: readonly unknown[] = [],
): readonly Encounter[] {
  return layers.flatMap((layer) => {
    const match = matchLayer(layer, path);
    if (!match) return [];
    const read = [...captured, ...Object.entries(match.params).flatMap(namedValue)];
    if (layer.route) {
      return handlersOf(layer).map((inner) => {
        return { layer: inner, mark: markOf(inner.handle), route: layer, captured: read };
      });
    }
    const nested = layersOf(layer.handle);
    if (nested) return encounters(nested, restOf(path, match.path), read);
    return [{ layer, mark: markOf(layer.handle), route: undefined, captured: read }];
  });
}

/** Parameters with a name are what somebody has declared; those with a number are groups of an expression. */
function namedValue([name, value]: readonly [string, unknown]): readonly unknown[] {
  return /^\d+$/.test(name) ? [] : [value].flat();
}

function restOf(path: string, taken: string): string {
  const rest = path.slice(taken.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

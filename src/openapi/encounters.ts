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
  /** As much of the path as had to fit for it to be met. */
  readonly taken: string;
}

interface Before {
  readonly captured: readonly unknown[];
  readonly taken: string;
}

/**
 * Follows a request through routers without running anything: Express's own layers say which of them it would meet, in
 * which order. What would answer lets it pass here, so that what stands behind is seen too; the method is left open.
 */
export function encounters(
  layers: readonly Layer[],
  path: string,
  before: Before = { captured: [], taken: '' },
): readonly Encounter[] {
  return layers.flatMap((layer) => {
    const match = matchLayer(layer, path);
    if (!match) return [];
    const captured = [...before.captured, ...Object.entries(match.params).flatMap(namedValue)];
    const met = { captured, taken: before.taken + match.path };
    if (layer.route) {
      return handlersOf(layer).map((inner) => {
        return { layer: inner, mark: markOf(inner.handle), route: layer, ...met };
      });
    }
    const nested = layersOf(layer.handle);
    if (nested) return encounters(nested, restOf(path, match.path), met);
    return [{ layer, mark: markOf(layer.handle), route: undefined, ...met }];
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

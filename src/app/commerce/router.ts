import { Router } from 'express';
import { PLACEHOLDERS } from './placeholders';
import { resourceRouter } from './resource-router';
import { RESOURCES } from './resources';
import type { ResourceName } from './resources';

/** Options of {@link commerceRouter}. */
export interface CommerceRouterOptions {
  /** Routers that replace placeholders, by resource. Each has its own `requireScope()` guards. */
  readonly replace?: { readonly [Name in ResourceName]?: Router };
  /** Time of the sample data, in ms since the epoch. Default: the wall clock. */
  readonly clock?: () => number;
}

/**
 * Makes the router of all commerce resources. Mount it at `/v1` after `authenticate()` and `requestValidation()`. Every
 * router has its own sample data.
 *
 * A placeholder is replaced by one line in `replace`: the router given is mounted in its place, at `/v1/orders` here.
 * Its routes are relative to that, and its own guards apply; the start fails when they differ from openapi.yaml.
 *
 * @throws TypeError when `replace` names no resource
 *
 * @example
 * ```ts
 * const orders = Router();
 * orders.get('/', requireScope('orders:read'), listOrdersFromDatabase);
 *
 * app.use('/v1', gate, requestValidation(document), commerceRouter({ replace: { orders } }));
 * ```
 */
export function commerceRouter({ replace = {}, clock = Date.now }: CommerceRouterOptions = {}): Router {
  refuseUnknownResources(Object.keys(replace));
  const router = Router();
  for (const resource of RESOURCES) {
    const { path } = resource;
    router.use(`/${path}`, replace[path] ?? resourceRouter(resource, PLACEHOLDERS[path](clock)));
  }
  return router;
}

function refuseUnknownResources(names: readonly string[]): void {
  const known: readonly string[] = RESOURCES.map(({ path }) => path);
  for (const name of names) {
    if (known.includes(name)) continue;
    throw new TypeError(
      `commerceRouter(): option "replace" names no resource: ${JSON.stringify(name)}; known are ${known.join(', ')}`,
    );
  }
}

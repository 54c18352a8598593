import type { Router } from 'express';
import type { ScopeRequirement } from '../express/require-scope';
import { combine, describeAlternatives } from './requirement';

/** A route as it stands in a router. */
export interface DescribedRoute {
  /** `ALL` for a route that answers every method. */
  readonly method: string;
  /** As OpenAPI writes it: `/v1/orders/{id}`. */
  readonly path: string;
  /** What its guards ask for: `a and b`, `a or b`; empty when nothing guards it. */
  readonly requires: string;
}

/** As much of Express's own layers as is needed to read a router. */
interface Layer {
  readonly handle: object;
  readonly method?: string;
  readonly route?: { readonly path: string | RegExp | readonly (string | RegExp)[]; readonly stack: readonly Layer[] };
  /** Whether it is mounted at `/`. */
  readonly slash?: boolean;
  readonly rawPath?: unknown;
}

/**
 * Reads the routes and guards of an Express 5 router, nested routers included: what is really there, whoever wrote it.
 *
 * @param prefix - where the router is mounted: `/v1`
 */
export function describeRoutes(router: Router, prefix: string): readonly DescribedRoute[] {
  return walk(layersOf(router) ?? [], prefix, []);
}

function walk(layers: readonly Layer[], prefix: string, outer: readonly ScopeRequirement[]): DescribedRoute[] {
  // A guard that is used by the whole router guards what comes after it, and nothing before it.
  const guards = [...outer];
  return layers.flatMap((layer) => {
    if (layer.route) return describeRoute(layer.route, prefix, guards);
    const nested = layersOf(layer.handle);
    if (nested) return walk(nested, prefix + mountOf(layer), guards);
    const requirement = requirementOf(layer);
    if (requirement && layer.slash) guards.push(requirement);
    return [];
  });
}

function describeRoute(
  { path, stack }: NonNullable<Layer['route']>,
  prefix: string,
  outer: readonly ScopeRequirement[],
): DescribedRoute[] {
  const methods = new Set<string | undefined>(stack.flatMap(({ method }) => method ?? []));
  // `.all()` with a guard is a prelude to the other methods; with anything else it may answer any method.
  if (stack.some((layer) => layer.method === undefined && !requirementOf(layer))) methods.add(undefined);
  return [path].flat().flatMap((one) =>
    [...methods].map((method) => {
      const own = stack.filter((layer) => layer.method === method || layer.method === undefined);
      return {
        method: (method ?? 'all').toUpperCase(),
        path: prefix + toTemplate(String(one)),
        requires: describeAlternatives(combine([...outer, ...guardsOf(own)])),
      };
    }),
  );
}

/** The guards in front of the handler: one behind it guards nothing. */
function guardsOf(layers: readonly Layer[]): ScopeRequirement[] {
  const handler = layers.findLastIndex((layer) => !requirementOf(layer));
  return layers.slice(0, handler).flatMap((layer) => requirementOf(layer) ?? []);
}

function requirementOf(layer: Layer): ScopeRequirement | undefined {
  return (layer.handle as { readonly requirement?: ScopeRequirement }).requirement;
}

function layersOf(handle: object): readonly Layer[] | undefined {
  const { stack } = handle as { readonly stack?: unknown };
  return Array.isArray(stack) ? (stack as readonly Layer[]) : undefined;
}

/** Where a nested router is mounted. A path that cannot be read is shown as such, and then fits no operation. */
function mountOf({ slash, rawPath }: Layer): string {
  if (slash) return '';
  return toTemplate(typeof rawPath === 'string' || rawPath instanceof RegExp ? String(rawPath) : '/(unreadable)');
}

/** `/orders/:id` in Express is `/orders/{id}` in OpenAPI. */
function toTemplate(path: string): string {
  return path === '/' ? '' : path.replace(/:([A-Za-z_$][\w$]*)/g, '{$1}').replace(/\/$/, '');
}

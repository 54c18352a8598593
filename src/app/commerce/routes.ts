import { RESOURCES } from './resources';
import type { Action, Operation, Resource } from './resources';

/** HTTP methods of the commerce API. */
export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/** One route of the commerce API. */
export interface Route {
  readonly method: Method;
  /** As OpenAPI writes it: `/v1/orders/{id}`. */
  readonly path: string;
  /** All of them are required. */
  readonly scopes: readonly string[];
  /** Not required; with them the response contains more. */
  readonly optionalScopes: readonly string[];
  readonly operationId: string;
  /** The resource it belongs to: `orders`. */
  readonly resource: string;
  readonly operation: Operation | 'action';
  /** What is done, where `operation` is `action`. */
  readonly action?: Action;
}

/** Method, path below the resource, and the half of the scope family that each operation asks for. Write does not imply read. */
const OPERATIONS = {
  list: { method: 'GET', path: '', access: 'read' },
  create: { method: 'POST', path: '', access: 'write' },
  get: { method: 'GET', path: '/{id}', access: 'read' },
  update: { method: 'PATCH', path: '/{id}', access: 'write' },
  remove: { method: 'DELETE', path: '/{id}', access: 'write' },
} as const satisfies Record<Operation, { method: Method; path: string; access: 'read' | 'write' }>;

/** Every scope of the commerce API, sorted. */
export const SCOPES: readonly string[] = Object.freeze(
  [...new Set(RESOURCES.flatMap(scopesOf))].sort((a, b) => (a < b ? -1 : 1)),
);

/** Every route of the commerce API, in the order of the table. */
export function routes(): readonly Route[] {
  return RESOURCES.flatMap(routesOf);
}

/** The routes of one resource. */
export function routesOf(resource: Resource): readonly Route[] {
  const optionalScopes = resource.optionalScopes ?? [];
  const operations = resource.operations.map((operation): Route => {
    const { method, path, access } = OPERATIONS[operation];
    return {
      method,
      path: `/v1/${resource.path}${path}`,
      scopes: [`${resource.family}:${access}`],
      // The response to a removal has no body.
      optionalScopes: operation === 'remove' ? [] : optionalScopes,
      operationId: `${operation}${operation === 'list' ? resource.plural : resource.noun}`,
      resource: resource.path,
      operation,
    };
  });
  const actions = (resource.actions ?? []).map((action): Route => {
    return {
      method: 'POST',
      path: `/v1/${resource.path}${action.path}`,
      scopes: [action.scope],
      optionalScopes,
      operationId: action.operationId,
      resource: resource.path,
      operation: 'action',
      action,
    };
  });
  return [...operations, ...actions];
}

function scopesOf(resource: Resource): string[] {
  return routesOf(resource).flatMap((route) => [...route.scopes, ...route.optionalScopes]);
}

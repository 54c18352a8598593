/** A request that does more than change members: `POST /v1/orders/{id}/cancel`. */
export interface Action {
  readonly name: string;
  readonly operationId: string;
  /** Below the resource. Without `{id}`, `reference` names the row. */
  readonly path: string;
  readonly scope: string;
  /** Member of the request body that holds the id of the row. */
  readonly reference?: string;
  /** Responds with 201 and something new instead of 200 and the row. */
  readonly creates?: true;
}

/** One row of the table from which routers and scopes are made. */
export interface Resource {
  /** Its path segment under `/v1`, and its name. */
  readonly path: string;
  /** One of its rows in an operation id: `Order` in `getOrder`. */
  readonly noun: string;
  /** Its rows in an operation id: `Orders` in `listOrders`. Default: the noun with an s. */
  readonly plural?: string;
  /** Scope family: `prices` gives `prices:read` and `prices:write`. */
  readonly family: string;
  /** On its rows, besides the actions. */
  readonly operations: readonly ('list' | 'create' | 'get' | 'update' | 'remove')[];
  readonly actions?: readonly Action[];
  /** Scopes that are not required, but add members to responses. */
  readonly optionalScopes?: readonly string[];
}

// Rows that others refer to are closed, cancelled or archived, never removed: locations, customers, orders, checks.
const LASTING = ['list', 'create', 'get', 'update'] as const;
const REMOVABLE = ['list', 'create', 'get', 'update', 'remove'] as const;

/** The commerce resources. To change the API, change this table and openapi.yaml: the start fails until both agree. */
export const RESOURCES = [
  { path: 'locations', noun: 'Location', family: 'locations', operations: LASTING },
  { path: 'items', noun: 'Item', family: 'items', operations: REMOVABLE },
  { path: 'categories', noun: 'Category', plural: 'Categories', family: 'items', operations: REMOVABLE },
  {
    path: 'inventory',
    noun: 'InventoryLevel',
    family: 'inventory',
    operations: ['list', 'get', 'update'],
    actions: [
      {
        name: 'adjust',
        operationId: 'adjustInventory',
        path: '/adjustments',
        scope: 'inventory:write',
        reference: 'inventory_id',
        creates: true,
      },
    ],
  },
  { path: 'price-lists', noun: 'PriceList', family: 'prices', operations: REMOVABLE },
  { path: 'promotions', noun: 'Promotion', family: 'promotions', operations: REMOVABLE },
  {
    path: 'customers',
    noun: 'Customer',
    family: 'customers',
    operations: LASTING,
    optionalScopes: ['customers:pii'],
  },
  {
    path: 'orders',
    noun: 'Order',
    family: 'orders',
    operations: LASTING,
    actions: [{ name: 'cancel', operationId: 'cancelOrder', path: '/{id}/cancel', scope: 'orders:cancel' }],
  },
  {
    path: 'payments',
    noun: 'Payment',
    family: 'payments',
    // A payment is a fact: it is refunded, not edited.
    operations: ['list', 'create', 'get'],
    actions: [
      {
        name: 'refund',
        operationId: 'refundPayment',
        path: '/{id}/refunds',
        scope: 'payments:refund',
        creates: true,
      },
    ],
  },
  { path: 'menus', noun: 'Menu', family: 'menus', operations: REMOVABLE },
  { path: 'modifier-groups', noun: 'ModifierGroup', family: 'menus', operations: REMOVABLE },
  { path: 'tables', noun: 'Table', family: 'tables', operations: REMOVABLE },
  {
    path: 'checks',
    noun: 'Check',
    family: 'checks',
    operations: LASTING,
    actions: [{ name: 'close', operationId: 'closeCheck', path: '/{id}/close', scope: 'checks:write' }],
  },
  {
    path: 'reservations',
    noun: 'Reservation',
    family: 'reservations',
    operations: LASTING,
    actions: [{ name: 'seat', operationId: 'seatReservation', path: '/{id}/seat', scope: 'reservations:write' }],
  },
  {
    path: 'kitchen-tickets',
    noun: 'KitchenTicket',
    family: 'kitchen',
    operations: LASTING,
    actions: [{ name: 'bump', operationId: 'bumpKitchenTicket', path: '/{id}/bump', scope: 'kitchen:write' }],
  },
] as const satisfies readonly Resource[];

/** Name of one of the commerce resources, and its path segment under `/v1`. */
export type ResourceName = (typeof RESOURCES)[number]['path'];

/** One route of the commerce API. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** As OpenAPI writes it: `/v1/orders/{id}`. */
  readonly path: string;
  /** All of them are required. */
  readonly scopes: readonly string[];
  /** Not required; with them the response contains more. */
  readonly optionalScopes: readonly string[];
  readonly operationId: string;
  /** The resource it belongs to: `orders`. */
  readonly resource: string;
  /** What is done: an operation on rows, or an action. */
  readonly operation: Resource['operations'][number] | Action;
}

/** Method, path below the resource, and the half of the scope family that each operation asks for. Write does not imply read. */
const OPERATIONS = {
  list: { method: 'GET', path: '', access: 'read' },
  create: { method: 'POST', path: '', access: 'write' },
  get: { method: 'GET', path: '/{id}', access: 'read' },
  update: { method: 'PATCH', path: '/{id}', access: 'write' },
  remove: { method: 'DELETE', path: '/{id}', access: 'write' },
} as const satisfies Record<
  Resource['operations'][number],
  { method: Route['method']; path: string; access: 'read' | 'write' }
>;

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
  const { optionalScopes = [], plural = `${resource.noun}s` } = resource;
  const operations = resource.operations.map((operation): Route => {
    const { method, path, access } = OPERATIONS[operation];
    return {
      method,
      path: `/v1/${resource.path}${path}`,
      scopes: [`${resource.family}:${access}`],
      // The response to a removal has no body.
      optionalScopes: operation === 'remove' ? [] : optionalScopes,
      operationId: operation === 'list' ? `list${plural}` : `${operation}${resource.noun}`,
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
      operation: action,
    };
  });
  return [...operations, ...actions];
}

function scopesOf(resource: Resource): string[] {
  return routesOf(resource).flatMap((route) => [...route.scopes, ...route.optionalScopes]);
}

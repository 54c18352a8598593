/** Name of one of the commerce resources, and its path segment under `/v1`. */
export type ResourceName =
  | 'locations'
  | 'items'
  | 'categories'
  | 'inventory'
  | 'price-lists'
  | 'promotions'
  | 'customers'
  | 'orders'
  | 'payments'
  | 'menus'
  | 'modifier-groups'
  | 'tables'
  | 'checks'
  | 'reservations'
  | 'kitchen-tickets';

/** Operations on the rows of a resource, besides its actions. */
export type Operation = 'list' | 'create' | 'get' | 'update' | 'remove';

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
  readonly path: ResourceName;
  /** One of its rows in an operation id: `Order` in `getOrder`. */
  readonly noun: string;
  /** Its rows in an operation id: `Orders` in `listOrders`. */
  readonly plural: string;
  /** Scope family: `prices` gives `prices:read` and `prices:write`. */
  readonly family: string;
  readonly operations: readonly Operation[];
  readonly actions?: readonly Action[];
  /** Scopes that are not required, but add members to responses. */
  readonly optionalScopes?: readonly string[];
}

// Rows that others refer to are closed, cancelled or archived, never removed: locations, customers, orders, checks.
const LASTING = ['list', 'create', 'get', 'update'] as const;
const REMOVABLE = ['list', 'create', 'get', 'update', 'remove'] as const;

/** The commerce resources. To change the API, change this table and openapi.yaml: the start fails until both agree. */
export const RESOURCES = [
  { path: 'locations', noun: 'Location', plural: 'Locations', family: 'locations', operations: LASTING },
  { path: 'items', noun: 'Item', plural: 'Items', family: 'items', operations: REMOVABLE },
  { path: 'categories', noun: 'Category', plural: 'Categories', family: 'items', operations: REMOVABLE },
  {
    path: 'inventory',
    noun: 'InventoryLevel',
    plural: 'InventoryLevels',
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
  { path: 'price-lists', noun: 'PriceList', plural: 'PriceLists', family: 'prices', operations: REMOVABLE },
  { path: 'promotions', noun: 'Promotion', plural: 'Promotions', family: 'promotions', operations: REMOVABLE },
  {
    path: 'customers',
    noun: 'Customer',
    plural: 'Customers',
    family: 'customers',
    operations: LASTING,
    optionalScopes: ['customers:pii'],
  },
  {
    path: 'orders',
    noun: 'Order',
    plural: 'Orders',
    family: 'orders',
    operations: LASTING,
    actions: [{ name: 'cancel', operationId: 'cancelOrder', path: '/{id}/cancel', scope: 'orders:cancel' }],
  },
  {
    path: 'payments',
    noun: 'Payment',
    plural: 'Payments',
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
  { path: 'menus', noun: 'Menu', plural: 'Menus', family: 'menus', operations: REMOVABLE },
  { path: 'modifier-groups', noun: 'ModifierGroup', plural: 'ModifierGroups', family: 'menus', operations: REMOVABLE },
  { path: 'tables', noun: 'Table', plural: 'Tables', family: 'tables', operations: REMOVABLE },
  {
    path: 'checks',
    noun: 'Check',
    plural: 'Checks',
    family: 'checks',
    operations: LASTING,
    actions: [{ name: 'close', operationId: 'closeCheck', path: '/{id}/close', scope: 'checks:write' }],
  },
  {
    path: 'reservations',
    noun: 'Reservation',
    plural: 'Reservations',
    family: 'reservations',
    operations: LASTING,
    actions: [{ name: 'seat', operationId: 'seatReservation', path: '/{id}/seat', scope: 'reservations:write' }],
  },
  {
    path: 'kitchen-tickets',
    noun: 'KitchenTicket',
    plural: 'KitchenTickets',
    family: 'kitchen',
    operations: LASTING,
    actions: [{ name: 'bump', operationId: 'bumpKitchenTicket', path: '/{id}/bump', scope: 'kitchen:write' }],
  },
] as const satisfies readonly Resource[];

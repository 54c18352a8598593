import * as actions from './actions';
import type { Action, Rules } from './actions';

/** One row of the table that the placeholder routers are made from. openapi.yaml says the rest. */
export interface Resource {
  /** Path segment under `/v1`. */
  readonly path: string;
  /** Name of the schema of its rows; the examples of the schema are the sample data. */
  readonly schema: string;
  /** Family of its scopes: `prices` stands for `prices:read` and `prices:write`. Write does not imply read. */
  readonly scopes: string;
  readonly operations: readonly ('list' | 'create' | 'get' | 'update' | 'remove')[];
  /** What a change of members does not say: `POST /v1/orders/{id}/cancel`. */
  readonly actions?: readonly Action[];
  /** Members that are computed or hidden. */
  readonly rules?: Rules;
}

// Rows that others refer to are closed, cancelled or archived, never removed: locations, customers, orders, checks.
const LASTING = ['list', 'create', 'get', 'update'] as const;
const REMOVABLE = ['list', 'create', 'get', 'update', 'remove'] as const;

/** The commerce resources. To change the API, change this table and openapi.yaml: a test compares the two. */
export const RESOURCES: readonly Resource[] = [
  { path: 'locations', schema: 'Location', scopes: 'locations', operations: LASTING },
  { path: 'items', schema: 'Item', scopes: 'items', operations: REMOVABLE },
  { path: 'categories', schema: 'Category', scopes: 'items', operations: REMOVABLE },
  {
    path: 'inventory',
    schema: 'InventoryLevel',
    scopes: 'inventory',
    // Levels come with items and locations.
    operations: ['list', 'get', 'update'],
    actions: [
      { path: '/adjustments', scope: 'inventory:write', act: actions.adjust, rowId: 'inventory_id', creates: true },
    ],
    rules: actions.inventory,
  },
  { path: 'price-lists', schema: 'PriceList', scopes: 'prices', operations: REMOVABLE },
  { path: 'promotions', schema: 'Promotion', scopes: 'promotions', operations: REMOVABLE },
  {
    path: 'customers',
    schema: 'Customer',
    scopes: 'customers',
    operations: LASTING,
    rules: actions.customers,
  },
  {
    path: 'orders',
    schema: 'Order',
    scopes: 'orders',
    operations: LASTING,
    actions: [{ path: '/{id}/cancel', scope: 'orders:cancel', act: actions.cancel }],
    rules: actions.orders,
  },
  {
    path: 'payments',
    schema: 'Payment',
    scopes: 'payments',
    // A payment is a fact: it is refunded, not edited.
    operations: ['list', 'create', 'get'],
    actions: [{ path: '/{id}/refunds', scope: 'payments:refund', act: actions.refund, creates: true }],
    rules: actions.payments,
  },
  { path: 'menus', schema: 'Menu', scopes: 'menus', operations: REMOVABLE },
  { path: 'modifier-groups', schema: 'ModifierGroup', scopes: 'menus', operations: REMOVABLE },
  { path: 'tables', schema: 'Table', scopes: 'tables', operations: REMOVABLE },
  {
    path: 'checks',
    schema: 'Check',
    scopes: 'checks',
    operations: LASTING,
    actions: [{ path: '/{id}/close', scope: 'checks:write', act: actions.close }],
    rules: actions.checks,
  },
  {
    path: 'reservations',
    schema: 'Reservation',
    scopes: 'reservations',
    operations: LASTING,
    actions: [{ path: '/{id}/seat', scope: 'reservations:write', act: actions.seat }],
    rules: actions.reservations,
  },
  {
    path: 'kitchen-tickets',
    schema: 'KitchenTicket',
    scopes: 'kitchen',
    operations: LASTING,
    actions: [{ path: '/{id}/bump', scope: 'kitchen:write', act: actions.bump }],
    rules: actions.kitchenTickets,
  },
];

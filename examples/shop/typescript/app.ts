import { createApp as createScaffold } from '@tillgate/app';
import type { App, AppOptions } from '@tillgate/app';
import { ordersRouter } from './orders.js';

/**
 * The API. The scaffold authenticates requests, limits and validates them, and logs them; openapi.yaml is the contract,
 * and the start fails where a route or its guard differs from it.
 */
export function createApp(options: AppOptions): App {
  return createScaffold({ ...options, document: 'openapi.yaml', routers: { orders: ordersRouter() } });
}

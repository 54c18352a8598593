export { RESOURCES } from './resources';
export type { Resource, ResourceName } from './resources';
export { commerceRouter } from './router';
export type { CommerceRouterOptions } from './router';
export { routes, SCOPES } from './routes';
export type { Route } from './routes';

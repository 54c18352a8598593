export { assertAgreement, findDisagreements, findRouterDisagreements } from './agreement';
export type { ContractRoute } from './agreement';
export { describeRoutes } from './describe-routes';
export type { DescribedRoute } from './describe-routes';
export type { ContractDocument } from './document';
export { loadContract } from './load';

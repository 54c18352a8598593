/*
 * The seam: what `@tillgate/cli` of the same version use and no public entry has, with the reason for each. No promise to
 * anybody else. test/repository/layers.test.ts counts it: the list gets shorter, never longer.
 */

// A route as tillgate routes prints it.
export type { DescribedRoute } from './audit/app-routes';
// tillgate routes and the console list routes with their guards.
export { describeRoutes } from './audit/app-routes';
// The routes of an app are read in one way.
export { layersOf } from './audit/app-routes';
// The scaffold compares its routes with openapi.yaml when it starts.
export { assertAgreement } from './audit/audit';
// check and routes print findings of an audit.
export { describeFinding } from './audit/audit';
// tillgate routes --check compares with any document.
export { findDisagreements } from './audit/audit';
// tillgate contract lists the classes of cases.
export { CASE_CLASSES } from './contract/options';
// tillgate contract prints what was sent, and what differed.
export type { CaseFailure } from './contract/operation';
// tillgate contract reads its options from a file.
export { parseYaml } from './openapi/document';
// The scaffold makes routers for every operation.
export { allOperations } from './openapi/document';
// The scaffold serves the document itself.
export { CONTRACT_FILE } from './openapi/document';
// The type of an OpenAPI document.
export type { ContractDocument } from './openapi/document';
// tillgate routes prints what a route demands.
export { describeAlternatives } from './openapi/document';
// The scaffold and the command read openapi.yaml.
export { loadContract } from './openapi/document';
// tillgate dev takes scopes from any document.
export { loadDocument } from './openapi/document';
// An operation with its path.
export type { LocatedOperation } from './openapi/document';
// Messages name an operation in one way.
export { nameOf } from './openapi/document';
// The operations of a document.
export { operationsOf } from './openapi/document';
// The scopes of a document.
export { scopesOf } from './openapi/document';
// Validation points into the document.
export { toFragment } from './openapi/document';

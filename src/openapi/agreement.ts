import type { Router } from 'express';
import { ConfigurationError } from '../core/configuration-error';
import type { DescribedRoute } from './app-routes';
import { auditApp, compareRoutes, compareScopes, describeFinding, sortFindings } from './audit';
import { describeAlternatives, nameOf, operationsOf } from './document';
import type { ContractDocument, LocatedOperation } from './document';
import { shapeOf } from './path-template';

/** A route from the table of resources. */
interface ContractRoute {
  readonly method: string;
  /** As OpenAPI writes it: `/v1/orders/{id}`. */
  readonly path: string;
  /** All of them are required. */
  readonly scopes: readonly string[];
  readonly optionalScopes?: readonly string[];
  readonly operationId?: string;
}

/**
 * Refuses a contract that disagrees with the table of routes, or with the router that is mounted at `/v1`.
 *
 * @throws ConfigurationError with every disagreement
 */
export function assertAgreement(
  document: ContractDocument,
  routes: readonly ContractRoute[],
  scopes: readonly string[],
  router?: Router,
): void {
  const problems = [
    ...findDisagreements(document, routes, scopes),
    ...(router ? findRouterDisagreements(document, router) : []),
  ];
  if (problems.length > 0) throw new ConfigurationError(problems);
}

/** Compares the table of routes and its scopes with the document; one sentence per disagreement. */
export function findDisagreements(
  document: ContractDocument,
  routes: readonly ContractRoute[],
  scopes: readonly string[],
): string[] {
  const operations = operationsOf(document);
  const names = { source: 'the table of resources', document: 'openapi.yaml' };
  return [
    ...sortFindings(compareRoutes(names, routes.map(describeRow), operations)).map(describeFinding),
    ...routes.flatMap((route) => compareNames(route, operations)),
    ...sortFindings(compareScopes(names, document, operations, scopes)).map(describeFinding),
    ...operations.flatMap(findParameterMistakes),
  ];
}

/** Compares the routes and guards of a router mounted at `/v1` with the document. */
export function findRouterDisagreements(document: ContractDocument, router: Router): string[] {
  const names = { source: 'the router', document: 'openapi.yaml' };
  const audit = { names, operations: operationsOf(document), mountedAt: '/v1', behindGate: true };
  return auditApp(router, audit).map(describeFinding);
}

function describeRow({ method, path, scopes }: ContractRoute): DescribedRoute {
  return { method, path, requires: [scopes], tooLate: [], gate: 'strict' };
}

/** Compares names, which a router does not have. */
function compareNames(route: ContractRoute, operations: readonly LocatedOperation[]): string[] {
  const at = operations.find(({ method, path }) => method === route.method && shapeOf(path) === shapeOf(route.path));
  if (!at) return [];
  const optional = (scopes: readonly string[] = []): string => describeAlternatives([scopes]) || 'none';
  const { operationId = 'nothing', 'x-optional-scopes': optionalScopes } = at.operation;
  const members = [
    ['path', route.path, at.path],
    ['operationId', route.operationId ?? operationId, operationId],
    ['x-optional-scopes', optional(route.optionalScopes ?? optionalScopes), optional(optionalScopes)],
  ] as const;
  return members
    .filter(([, ours, theirs]) => ours !== theirs)
    .map(([what, ours, theirs]) => {
      return `${nameOf(route)}: the table of resources has the ${what} ${ours}, openapi.yaml says ${theirs}; make them equal`;
    });
}

function findParameterMistakes(at: LocatedOperation): string[] {
  const inPath = [...at.path.matchAll(/\{([^}]+)\}/g)].map(([, name = '']) => name);
  const described = at.parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name);
  const missing = inPath.filter((name) => !described.includes(name));
  const superfluous = described.filter((name) => !inPath.includes(name));
  return [
    ...missing.map((name) => `does not describe the path parameter ${name}; add it to its parameters`),
    ...superfluous.map((name) => `describes the path parameter ${name}, which is not in the path; remove it`),
  ].map((mistake) => `${nameOf(at)}: openapi.yaml ${mistake}`);
}

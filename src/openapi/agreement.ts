import type { Router } from 'express';
import { ConfigurationError } from '../core/configuration-error';
import { describeRoutes } from './describe-routes';
import { declaredScopes, operationsOf } from './document';
import type { ContractDocument, LocatedOperation } from './document';
import { describeAlternatives } from './requirement';

/** A route of the table that the API is made from. */
export interface ContractRoute {
  readonly method: string;
  /** As OpenAPI writes it: `/v1/orders/{id}`. */
  readonly path: string;
  /** All of them are required. */
  readonly scopes: readonly string[];
  readonly optionalScopes?: readonly string[];
  readonly operationId?: string;
}

/** A route from the table or from a router, in the one form in which routes are compared. */
interface Fact {
  readonly method: string;
  readonly path: string;
  readonly requires: string;
  readonly optionalScopes?: readonly string[] | undefined;
  readonly operationId?: string | undefined;
}

/**
 * Refuses a contract that says something else than the table of routes, or than the router that is mounted at `/v1`.
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

/** Holds the table of routes and its scopes against the document; one sentence per disagreement. */
export function findDisagreements(
  document: ContractDocument,
  routes: readonly ContractRoute[],
  scopes: readonly string[],
): string[] {
  const facts = routes.map((route) => ({ ...route, requires: describeAlternatives([route.scopes]) }));
  return [
    ...compareRoutes('the table of resources', facts, operationsOf(document)),
    ...compareScopes(document, scopes),
    ...operationsOf(document).flatMap(findParameterMistakes),
  ];
}

/** Holds the routes and guards that really stand in a router mounted at `/v1` against the document. */
export function findRouterDisagreements(document: ContractDocument, router: Router): string[] {
  return compareRoutes('the router', describeRoutes(router, '/v1'), operationsOf(document));
}

function compareRoutes(source: string, facts: readonly Fact[], operations: readonly LocatedOperation[]): string[] {
  const documented = new Map(operations.map((operation) => [keyOf(operation), operation]));
  const known = new Set(facts.map(keyOf));
  const missing = operations
    .filter((operation) => !known.has(keyOf(operation)))
    .map((at) => `${nameOf(at)}: openapi.yaml has it, ${source} has not; add the route, or remove the operation`);
  return facts
    .flatMap((fact) => {
      const operation = documented.get(keyOf(fact));
      return operation
        ? compareRoute(source, fact, operation)
        : [`${nameOf(fact)}: ${source} has it, openapi.yaml has not; document the operation, or remove the route`];
    })
    .concat(missing);
}

function compareRoute(source: string, fact: Fact, at: LocatedOperation): string[] {
  const { operation, path, security } = at;
  const problems: string[] = [];
  const say = (what: string, ours: string, theirs: string): void => {
    problems.push(`${nameOf(fact)}: ${source} ${what} ${ours}, openapi.yaml says ${theirs}; make them equal`);
  };

  const required = describeAlternatives(security);
  if (fact.requires === '') {
    problems.push(`${nameOf(fact)}: nothing guards it in ${source}; put requireScope() in front of its handler`);
  } else if (fact.requires !== required) say('requires', fact.requires, required || 'that no scope is required');

  if (fact.path !== path) say('has the path', fact.path, path);
  if (fact.operationId !== undefined && fact.operationId !== operation.operationId) {
    say('has the operationId', fact.operationId, operation.operationId ?? 'nothing');
  }
  const optional = describeAlternatives([operation['x-optional-scopes'] ?? []]);
  const ours = describeAlternatives([fact.optionalScopes ?? []]);
  if (fact.optionalScopes && ours !== optional) say('has the x-optional-scopes', ours || 'none', optional || 'none');
  return problems;
}

function compareScopes(document: ContractDocument, scopes: readonly string[]): string[] {
  const declared = new Set(declaredScopes(document));
  const used = new Set(
    operationsOf(document).flatMap(({ security, operation }) => [
      ...security.flat(),
      ...(operation['x-optional-scopes'] ?? []),
    ]),
  );
  const where = 'components.securitySchemes of openapi.yaml';
  return [
    ...[...new Set([...scopes, ...used])]
      .filter((scope) => !declared.has(scope))
      .map((scope) => `scope ${scope}: missing in ${where}; declare it there with a description`),
    ...[...declared]
      .filter((scope) => !used.has(scope))
      .map((scope) => `scope ${scope}: declared in ${where}, but no operation asks for it; use it, or remove it`),
    ...[...declared]
      .filter((scope) => !scopes.includes(scope))
      .map((scope) => `scope ${scope}: declared in ${where}, but not in the table of resources; add it, or remove it`),
  ];
}

function findParameterMistakes(at: LocatedOperation): string[] {
  const inPath = [...at.path.matchAll(/\{([^}]+)\}/g)].map(([, name = '']) => name);
  const described = at.parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name);
  return [
    ...inPath
      .filter((name) => !described.includes(name))
      .map((name) => `${nameOf(at)}: openapi.yaml describes no path parameter ${name}; add it to its parameters`),
    ...described
      .filter((name) => !inPath.includes(name))
      .map((name) => `${nameOf(at)}: openapi.yaml describes a path parameter ${name} that the path has not; remove it`),
  ];
}

/** Two routes are the same when they differ in nothing but the names of their parameters: Express sees only one of them. */
function keyOf({ method, path }: { readonly method: string; readonly path: string }): string {
  return `${method} ${path.replace(/\{[^}]*\}/g, '{}')}`;
}

function nameOf({ method, path }: { readonly method: string; readonly path: string }): string {
  return `${method} ${path}`;
}

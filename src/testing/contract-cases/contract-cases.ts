import { basename } from 'node:path';
import { didYouMean } from '../../core/options';
import { layersOf } from '../../openapi/express-layer';
import { allOperations, basePathOf, declaredScopes } from '../../openapi/document';
import type { LocatedOperation } from '../../openapi/document';
import { describeFinding } from '../../openapi/finding';
import type { RouteFindingKind } from '../../openapi/finding';
import { ignoredPaths } from '../../openapi/ignored-paths';
import { loadDocument } from '../../openapi/load';
import { auditRoutes } from '../audit-routes';
import { appTarget, urlTarget } from './app-target';
import { assertNone } from './deviation';
import { documentedAnswers } from './documented-answers';
import { operationCases } from './operation-cases';
import type { ContractCase } from './operation-cases';
import { readContractOptions } from './options';
import type { ContractCasesOptions, ContractSettings } from './options';
import { refusals } from './refusal';
import { coverage, nameOf } from './report';
import type { ContractReport } from './report';
import { prepareRequest } from './sample-request';

/** The cases of one API. */
export interface ContractCases extends ReadonlyArray<ContractCase> {
  /** What the cases that have run so far did not reach. */
  report(this: void): ContractReport;
}

/** Reads come first and removals last, so that what one case needs another has not removed. */
const ORDER = ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'POST', 'PUT', 'PATCH', 'DELETE'];

/**
 * Makes the contract tests of an API from its OpenAPI 3 document. For every operation: no token, every kind of bad one,
 * too many of them, too few scopes, and each set of scopes that is enough; status, challenge and problem body (RFC 6750,
 * RFC 9457), that the handler is not reached, and that every answer is as documented. Of an Express app also that it has
 * the routes of the document and no other. It needs no test framework.
 *
 * @throws TypeError when an option is wrong
 * @throws ConfigurationError when the document cannot be read
 * @example
 * ```ts
 * import { contractCases, createTestIssuer } from 'tillgate/testing';
 * import { makeApp } from '../app';
 *
 * const issuer = createTestIssuer();
 * const app = makeApp(issuer.options);
 * for (const { name, run } of contractCases({ app, openapi: 'openapi.yaml', issuer })) it(name, run);
 * ```
 */
export function contractCases(options: ContractCasesOptions): ContractCases {
  const settings = readContractOptions(options);
  const { app, url, beforeGuard, requestOf } = settings;
  const document = loadDocument(settings.openapi);
  const basePath = settings.basePath ?? basePathOf(document);
  const operations = operationsOf(allOperations(document, basePath), settings.ignore);
  refuseUnknown(options.requests, operations);
  const judged = operations.filter(({ access }) => access !== 'other');
  const notJudged = operations.filter(({ access }) => access === 'other').map(nameOf);

  const answersOf = documentedAnswers(document, basePath);
  const reached = coverage(judged, answersOf, notJudged);
  const common = {
    settings,
    call: app ? appTarget(app, beforeGuard) : urlTarget(url as URL),
    coverage: reached,
    compareRefusal: refusals(settings),
    declaredScopes: declaredScopes(document),
  };
  const cases = judged.flatMap((operation) => {
    const { method, path } = operation;
    const given = requestOf({ operationId: operation.operation.operationId, method, path });
    const prepare = once(() => prepareRequest(document, operation, given));
    return operationCases(operation, { ...common, answers: answersOf(operation), prepare });
  });
  return Object.assign([...cases, ...routeCases(settings, basePath)], { report: reached.report });
}

function operationsOf(all: readonly LocatedOperation[], ignore: readonly string[]): readonly LocatedOperation[] {
  const isIgnored = ignoredPaths(ignore);
  const rank = ({ method }: LocatedOperation): number => ORDER.indexOf(method);
  return all.filter(({ path }) => !isIgnored(path)).sort((a, b) => rank(a) - rank(b));
}

/** A misspelt name would leave its request as it was, and say nothing. */
function refuseUnknown(requests: ContractCasesOptions['requests'], operations: readonly LocatedOperation[]): void {
  if (typeof requests !== 'object') return;
  const known = operations.flatMap((one) => [one.operation.operationId ?? nameOf(one), nameOf(one)]);
  const unknown = Object.keys(requests).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new TypeError(
    `contractCases(): "requests" names ${unknown}, which is no operation${didYouMean(unknown, known)}`,
  );
}

/** Only an Express app says which routes it has. */
function routeCases({ app, openapi, ignore }: ContractSettings, basePath: string): readonly ContractCase[] {
  if (!app || layersOf(app) === undefined) return [];
  const document = typeof openapi === 'string' ? basename(openapi) : 'the document';
  const cases: readonly (readonly [string, RouteFindingKind])[] = [
    [`The app has no route that ${document} does not document`, 'undocumented-route'],
    [`The app has a route for every operation of ${document}`, 'missing-route'],
  ];
  return cases.map(([name, kind]) => {
    function check(): void {
      const findings = auditRoutes(app as object, openapi, { basePath: basePath === '' ? '/' : basePath, ignore });
      const got = findings.filter((finding) => finding.kind === kind).map(describeFinding);
      assertNone(name, got.length === 0 ? [] : [{ what: 'routes', got, expected: [] }]);
    }
    return { name, run: () => Promise.resolve().then(check) };
  });
}

function once<Value extends object>(make: () => Value): () => Value {
  let made: Value | undefined;
  return () => (made ??= make());
}

import { basename } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { didYouMean } from '../../core/options';
import { layersOf } from '../../openapi/app-routes';
import { allOperations, basePathOf, declaredScopes, ignoredPaths, loadDocument, nameOf } from '../../openapi/document';
import type { LocatedOperation } from '../../openapi/document';
import { describeFinding } from '../../openapi/audit';
import type { RouteFindingKind } from '../../openapi/audit';
import { auditRoutes } from '../audit-routes';
import { acceptanceCase, operationCases } from './operation-cases';
import type { CaseContext, ContractCase, Refused } from './operation-cases';
import { readContractOptions } from './options';
import type { ContractCasesOptions, ContractSettings } from './options';
import { assertNoMismatch, documentedResponses, refusalRules } from './responses';
import { prepareRequest } from './samples';
import { appTarget, urlTarget } from './target';
import type { Target } from './target';

/** The cases of one API. */
export interface ContractCases extends ReadonlyArray<ContractCase> {
  /** Says what the cases that have run so far did not reach. */
  report(this: void): ContractReport;
}

/** What the cases that have run so far did not reach. Every list is in the order of the cases. */
export interface ContractReport {
  /** Operations that no case has called. */
  readonly notCalled: readonly string[];
  /** Operations whose gate accepted good tokens, but none of them got a 2xx: `POST /orders responded 409`. */
  readonly withoutSuccess: readonly string[];
  /** Documented responses that no case has received: `GET /orders 404`. */
  readonly responsesNotSeen: readonly string[];
  /** Operations without cases, because they are protected by something else than bearer tokens. */
  readonly notTested: readonly string[];
  /** All of it as text. */
  toString(): string;
}

/** Reads first, removals last, so that no case removes what a later one needs. */
const ORDER = ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** How long the last case waits for late handlers, in ms. */
const LATE_MS = 100;

/**
 * Makes the contract tests of an API from its OpenAPI 3 document. Each operation gets requests without a token, with bad
 * tokens, with two of them, with insufficient and with sufficient scopes. The cases check status, challenge and problem
 * body (RFC 6750, RFC 9457), that a refused request reaches no handler, and that every response is as documented; for an
 * Express app also that its routes are those of the document. They need no test framework.
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
  const document = loadDocument(settings.openapi);
  const basePath = settings.basePath ?? basePathOf(document);
  const isIgnored = ignoredPaths(settings.ignore);
  const operations = allOperations(document, basePath)
    .filter(({ path }) => !isIgnored(path))
    .sort((a, b) => ORDER.indexOf(a.method) - ORDER.indexOf(b.method));
  refuseUnknown(options.requests, operations);

  const { app, url, beforeGuard } = settings;
  const target = app ? appTarget(app, beforeGuard) : urlTarget(url as URL);
  const refused: Refused[] = [];
  const compareRefusal = refusalRules(settings);
  const responsesOf = documentedResponses(document, basePath);
  const contexts = operations
    .filter(({ access }) => access !== 'other')
    .map((operation): CaseContext => ({
      ...{ operation, settings, call: target.call, refused, compareRefusal },
      declaredScopes: declaredScopes(document),
      name: nameOf(operation),
      documented: responsesOf(operation),
      seen: new Set(),
      accepted: new Set(),
      prepare: once(() => prepareRequest(document, operation, settings.requestOf(operation))),
    }));
  const notTested = operations.filter(({ access }) => access === 'other').map(nameOf);
  const cases = [
    ...acceptanceCase(contexts),
    ...contexts.flatMap(operationCases),
    ...appCases(settings, basePath, target, refused),
  ];
  return Object.assign(cases, { report: () => contractReport(contexts, notTested) });
}

/** A misspelt name would have no effect, silently. */
function refuseUnknown(requests: ContractCasesOptions['requests'], operations: readonly LocatedOperation[]): void {
  if (typeof requests !== 'object') return;
  const known = operations.flatMap((one) => [one.operation.operationId ?? nameOf(one), nameOf(one)]);
  const unknown = Object.keys(requests).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new TypeError(
    `contractCases(): "requests" names ${unknown}, which is not an operation${didYouMean(unknown, known)}`,
  );
}

/** Cases that need the routes of an Express app. */
function appCases(
  { app, openapi, ignore }: ContractSettings,
  basePath: string,
  target: Target,
  refused: readonly Refused[],
): readonly ContractCase[] {
  if (!app || layersOf(app) === undefined) return [];
  const document = typeof openapi === 'string' ? basename(openapi) : 'the document';

  function routeCase(name: string, kind: RouteFindingKind): ContractCase {
    function check(): void {
      const findings = auditRoutes(app as object, openapi, { basePath: basePath || '/', ignore });
      const got = findings.filter((finding) => finding.kind === kind).map(describeFinding);
      assertNoMismatch(name, got.length === 0 ? [] : [{ what: 'routes', got, expected: [] }]);
    }
    return { name, run: () => Promise.resolve().then(check) };
  }
  return [
    routeCase(`The app has no route that ${document} does not document`, 'undocumented-route'),
    routeCase(`The app has a route for every operation of ${document}`, 'missing-route'),
    lateHandlerCase(target, refused),
  ];
}

/** A guard may refuse and still call `next()` when the response is already sent. */
function lateHandlerCase(target: Target, refused: readonly Refused[]): ContractCase {
  const name = 'The app calls no handler after it has refused a request';
  return {
    name,
    async run() {
      if (refused.length > 0) await wait(LATE_MS);
      target.stop();
      const [first, ...others] = refused.filter(({ reached, checked }) => reached.length > checked);
      if (!first) return;
      const more = others.length === 0 ? '' : ` and ${others.length} more`;
      const got = `${first.reached.slice(first.checked).join(', ')} (${first.name})${more}`;
      assertNoMismatch(name, [{ what: 'handlers reached later', got, expected: 'none' }]);
    },
  };
}

/** Sums up what the cases have reached. */
export function contractReport(
  operations: readonly Pick<CaseContext, 'name' | 'documented' | 'seen' | 'accepted'>[],
  notTested: readonly string[],
): ContractReport {
  const notCalled = operations.filter(({ seen }) => seen.size === 0).map(({ name }) => name);
  const withoutSuccess = operations
    .filter(({ accepted }) => accepted.size > 0 && Math.min(...accepted) >= 300)
    .map(({ name, accepted }) => `${name} responded ${[...accepted].join(', ')}`);
  const responsesNotSeen = operations.flatMap(({ name, documented, seen }) => {
    return documented.statuses.filter((status) => !seen.has(status)).map((status) => `${name} ${status}`);
  });
  const sections: readonly (readonly [title: string, lines: readonly string[]])[] = [
    ['Operations that no case has called', notCalled],
    ['Operations without a 2xx', withoutSuccess],
    ['Documented responses that no case has received', responsesNotSeen],
    ['Operations protected by something else than bearer tokens', notTested],
  ];
  const toString = (): string =>
    sections.map(([title, lines]) => [`${title}: ${lines.length}`, ...lines].join('\n  ')).join('\n');
  return { notCalled, withoutSuccess, responsesNotSeen, notTested, toString };
}

function once<Value extends object>(make: () => Value): () => Value {
  let made: Value | undefined;
  return () => (made ??= make());
}

import { fail } from 'node:assert';
import { basename } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { attempt, didYouMean } from 'tillgate/internal';
import { describeRoutes, layersOf, wayTo } from '../audit/app-routes';
import { describeFinding } from '../audit/audit';
import type { RouteFindingKind } from '../audit/audit';
import { allOperations, basePathOf, declaredScopes, ignoredPaths, loadDocument, nameOf } from '../openapi/document';
import type { LocatedOperation } from '../openapi/document';
import { auditRoutes } from '../audit/audit-routes';
import { attackCases } from './attacks';
import { securityNotices } from './lint';
import { describeRefusal, documentCase, isOfUnknownKey, send, tokenCases, tokenWith } from './operation';
import type { CaseContext, ContractCase, Refused } from './operation';
import { readContractOptions } from './options';
import type { ContractCasesOptions, ContractSettings } from './options';
import type { AttackedApi } from './probe';
import { assertNoMismatch, describeMismatch, documentedResponses, refusalRules, UNDOCUMENTED } from './responses';
import { prepareRequest } from './samples';
import { PARSERS } from './spy';
import { appTarget, urlTarget, watchLimit } from './target';
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
  /**
   * What the document lacks or says otherwise, one entry for each operation: `GET /orders: 401, 403 are not documented`.
   * With `strict` it fails the case of the operation.
   */
  readonly documentation: readonly string[];
  /** Functions that were called before the guard of a refused request: `POST /orders: saveOrder`. */
  readonly beforeGuard: readonly string[];
  /** What in the `security` of the document looks like a mistake: writes for anybody, scopes that nothing requires. */
  readonly security: readonly string[];
  /** Operations that were attacked less, because a rate limit had not enough requests left for the other cases. */
  readonly limited: readonly string[];
  /** All of it as text. */
  toString(): string;
}

/** Reads first, removals last, so that no case removes what a later one needs. */
const ORDER = ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** A document with more protected operations is attacked quickly unless told otherwise. */
const FULL_UP_TO = 12;
/** For requests of the cases beside one each. */
const MARGIN = 10;

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
 * import { contractCases, createTestIssuer } from '@tillgate/testing';
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
  const limit = watchLimit(target.call);
  /** Requests of the cases that are no attacks: a rate limit must leave them. */
  let reserve = 0;
  const refused: Refused[] = [];
  const rules = refusalRules({ ...settings, hasGate: app !== undefined && hasGate(app) });
  const responsesOf = documentedResponses(document, basePath);
  const protectedCount = operations.filter(({ access }) => access === 'token').length;
  const isFull = settings.depth === undefined ? protectedCount <= FULL_UP_TO : settings.depth === 'full';
  const ways = new Map(operations.map((one) => [one, app && wayTo(app, one.method, one.path)]));
  const representatives = new Map<string, CaseContext>();
  const contexts = operations
    .filter(({ access }) => access !== 'other')
    .map((operation): CaseContext => {
      const context: CaseContext = {
        ...{ operation, settings, call: limit.call, refused, rules, isFull },
        declaredScopes: declaredScopes(document),
        name: nameOf(operation),
        documented: responsesOf(operation),
        seen: new Set(),
        accepted: new Set(),
        good: undefined,
        isLimited: () => limit.left() <= reserve,
        wasLimited: false,
        differences: new Map(),
        beforeGuard: new Set(),
        refusals: new Map(),
        prepare: once(() => prepareRequest(document, operation, settings.requestOf(operation))),
        get representative() {
          return representatives.get(gateOf(operation)) ?? context;
        },
      };
      if (operation.access === 'token' && !representatives.has(gateOf(operation))) {
        representatives.set(gateOf(operation), context);
      }
      return context;
    });

  /** Operations behind the same functions have the same gate; over HTTP all are taken for one until they differ. */
  function gateOf(operation: LocatedOperation): string {
    const before = ways
      .get(operation)
      ?.before.filter((one) => !PARSERS.includes((one as { readonly name: string }).name));
    return (before ?? []).map(numberOf).join(' ');
  }

  const api: AttackedApi = {
    ...{ document, contexts },
    publicPath: operations.find(isPlainAndPublic)?.path ?? '/health',
    methodsOf: (path) => operations.filter((one) => one.path === path).map(({ method }) => method),
    operationOf: (method, path) =>
      contexts.find(({ operation }) => operation.method === method && operation.path === path),
    handlerOf: ({ operation }) => ways.get(operation)?.handler,
  };
  const security = securityNotices(document, operations);
  const notTested = operations.filter(({ access }) => access === 'other').map(nameOf);
  const ofTokens = new Map(contexts.map((context) => [context, tokenCases(context)]));
  reserve = [...ofTokens.values()].flat().length + MARGIN;
  const cases = [
    ...acceptanceCase(contexts),
    ...contexts.flatMap((context) => [
      ...(ofTokens.get(context) ?? []),
      ...attackCases(context, api),
      documentCase(context),
    ]),
    ...appCases(settings, basePath, target, refused),
  ];
  const { classes } = settings;
  const chosen = classes ? cases.filter((one) => one.class === undefined || classes.includes(one.class)) : cases;
  return Object.assign(chosen, { report: () => contractReport(contexts, notTested, security) });
}

function hasGate(app: object): boolean {
  return attempt(() => describeRoutes(app).routes.some(({ gate }) => gate !== 'none')) ?? false;
}

function isPlainAndPublic({ method, path, access }: LocatedOperation): boolean {
  return method === 'GET' && access === 'anybody' && !path.includes('{');
}

const numbers = new WeakMap<object, number>();
let lastNumber = 0;

/** A number for each function, to compare lists of them. */
function numberOf(one: object): number {
  const number = numbers.get(one) ?? ++lastNumber;
  numbers.set(one, number);
  return number;
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

/**
 * Makes the case that comes first: whether the API trusts the issuer at all. Without that every other case fails, for a
 * reason that none of them can name. Calls one operation after the other until one accepts a good token; an operation
 * that needs none by mistake proves nothing.
 */
function acceptanceCase(contexts: readonly CaseContext[]): readonly ContractCase[] {
  const needToken = contexts.filter(({ operation }) => operation.access === 'token');
  if (needToken.length === 0) return [];
  const name = 'The API accepts tokens of the test issuer';

  async function run(): Promise<void> {
    const refusals: string[] = [];
    for (const context of needToken) {
      const { response: withoutToken } = await send(context, {});
      if (withoutToken.status !== 401) continue;
      const { response } = await send(context, tokenWith(context, context.operation.security[0]));
      if (response.status !== 401 && response.status !== 503 && !isOfUnknownKey(response)) return;
      refusals.push(`${context.name} responded ${describeRefusal(response)}`);
    }
    const [first, ...others] = refusals;
    if (first === undefined) return;
    const more = others.length === 0 ? '' : `, and so did ${others.length} more`;
    const hint = 'Give authenticate() the options of the issuer, or configure its issuer, audience and keys';
    fail(`${name}\n  None of this issuer's tokens is accepted: ${first}${more}. ${hint}.`);
  }
  return [{ name, run }];
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
    return { name, class: 'routes', run: () => Promise.resolve().then(check) };
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
    class: 'routes',
    async run() {
      if (refused.length > 0) await wait(LATE_MS);
      target.stop();
      const [first, ...others] = refused.filter(({ reached, checked }) => reached().length > checked);
      if (!first) return;
      const more = others.length === 0 ? '' : ` and ${others.length} more`;
      const got = `${first.reached().slice(first.checked).join(', ')} (${first.name})${more}`;
      assertNoMismatch(name, [{ what: 'handlers reached later', got, expected: 'none' }]);
    },
  };
}

/** Sums up what the cases have reached. */
export function contractReport(
  operations: readonly Pick<
    CaseContext,
    'name' | 'documented' | 'seen' | 'accepted' | 'differences' | 'beforeGuard' | 'wasLimited'
  >[],
  notTested: readonly string[],
  security: readonly string[] = [],
): ContractReport {
  const notCalled = operations.filter(({ seen }) => seen.size === 0).map(({ name }) => name);
  const withoutSuccess = operations
    .filter(({ accepted }) => accepted.size > 0 && Math.min(...accepted) >= 300)
    .map(({ name, accepted }) => `${name} responded ${[...accepted].join(', ')}`);
  const responsesNotSeen = operations.flatMap(({ name, documented, seen }) => {
    return documented.statuses.filter((status) => !seen.has(status)).map((status) => `${name} ${status}`);
  });
  const documentation = operations.flatMap(({ name, differences }) => {
    const all = [...differences.values()];
    const statuses = all.filter(({ what }) => what === UNDOCUMENTED).map(({ got }) => String(got));
    const others = all.filter(({ what }) => what !== UNDOCUMENTED).map(describeMismatch);
    const missing =
      statuses.length === 0
        ? []
        : [`${statuses.sort().join(', ')} ${statuses.length > 1 ? 'are' : 'is'} not documented`];
    const lines = [...missing, ...others];
    return lines.length === 0 ? [] : [`${name}: ${lines.join('; ')}`];
  });
  const beforeGuard = operations.flatMap((one) =>
    one.beforeGuard.size === 0 ? [] : [`${one.name}: ${[...one.beforeGuard].join(', ')}`],
  );
  const limited = operations.filter(({ wasLimited }) => wasLimited).map(({ name }) => name);
  const sections: readonly (readonly [title: string, lines: readonly string[]])[] = [
    ['Operations that no case has called', notCalled],
    ['Operations without a 2xx', withoutSuccess],
    ['Documented responses that no case has received', responsesNotSeen],
    ['Operations protected by something else than bearer tokens', notTested],
    ['Operations that respond otherwise than documented', documentation],
    ['Functions that ran before a guard', beforeGuard],
    ['Security requirements that look like mistakes', security],
    ['Operations attacked less because of a rate limit', limited],
  ];
  const toString = (): string =>
    sections.map(([title, lines]) => [`${title}: ${lines.length}`, ...lines].join('\n  ')).join('\n');
  return {
    ...{ notCalled, withoutSuccess, responsesNotSeen, notTested, documentation, beforeGuard, security, limited },
    toString,
  };
}

function once<Value extends object>(make: () => Value): () => Value {
  let made: Value | undefined;
  return () => (made ??= make());
}

import { fail } from 'node:assert';
import { basename } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { isObject } from '../../core/objects';
import { didYouMean } from '../../core/options';
import { layersOf } from '../../openapi/app-routes';
import { describeFinding } from '../../openapi/audit';
import type { RouteFindingKind } from '../../openapi/audit';
import { allOperations, basePathOf, declaredScopes, ignoredPaths, loadDocument, nameOf } from '../../openapi/document';
import type { LocatedOperation } from '../../openapi/document';
import { auditRoutes } from '../audit-routes';
import { ATTACKS, bearer, insufficientSets, sufficientSets } from './credentials';
import type { TokenTransport } from './credentials';
import { readContractOptions } from './options';
import type { ContractCasesOptions, ContractSettings } from './options';
import { assertNoMismatch, documentedResponses, refusalRules } from './responses';
import type { ApiRequest, ApiResponse, DocumentedResponses, ExpectedRefusal, Mismatch } from './responses';
import { prepareRequest } from './samples';
import { appTarget, urlTarget } from './target';
import type { Target } from './target';

/** One requirement, with its test. */
export interface ContractCase {
  readonly name: string;
  /** Rejects with an AssertionError (node:assert) when the requirement is not met. */
  readonly run: () => Promise<void>;
}

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

/** A refused request whose handlers may still be called. */
interface Refused {
  /** Name of the case. */
  readonly name: string;
  readonly reached: readonly string[];
  /** How many entries of `reached` the case has checked itself. */
  readonly checked: number;
}

/** What the cases of one operation are made from. */
interface CaseContext {
  /** `GET /orders/{id}` */
  readonly name: string;
  readonly operation: LocatedOperation;
  readonly settings: ContractSettings;
  readonly call: Target['call'];
  /** Collects what was refused. */
  readonly refused: Refused[];
  readonly compareRefusal: ReturnType<typeof refusalRules>;
  readonly declaredScopes: readonly string[];
  /** Makes the request, good except for its missing token. */
  readonly prepare: () => ApiRequest;
  readonly documented: DocumentedResponses;
  /** Documented entries to which a response belonged so far, and statuses that are not documented. */
  readonly seen: Set<string>;
  /** Statuses of valid responses to tokens that are good enough. */
  readonly accepted: Set<number>;
}

/** Reads first, removals last, so that no case removes what a later one needs. */
const ORDER = ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Pause before a request is sent again that the API may refuse soon, in ms. */
const RETRY_MS = 50;

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

/** Lists the cases of one operation. */
function operationCases(context: CaseContext): readonly ContractCase[] {
  const { operation, settings } = context;
  const { security: alternatives } = operation;

  function toCase(sentence: string, test: (name: string) => Promise<void>): ContractCase {
    const name = `${context.name} ${sentence}`;
    return { name, run: () => test(name) };
  }

  if (operation.access === 'anybody') {
    return [toCase('responds without a token as documented', (name) => accept(context, name, {}))];
  }
  const { 'x-optional-scopes': optional = [] } = operation.operation;
  const withOptional = optional.length === 0 ? [] : alternatives.map((scopes) => [...scopes, ...optional]);
  const insufficientScope: ExpectedRefusal = {
    status: 403,
    error: 'insufficient_scope',
    codes: ['insufficient_scope'],
    scopes: [[...new Set(alternatives.flat())], ...alternatives],
  };
  return [
    ...ATTACKS.filter(({ token }) => settings.generations || !token?.superseded).map((attack) =>
      toCase(`refuses ${attack.name}`, (name) => {
        const token = settings.issuer.token({ scope: (alternatives[0] ?? []).join(' '), ...attack.token });
        // The API may learn late of the change that supersedes a token.
        const retryForMs = attack.token?.superseded ? settings.propagationMs : 0;
        return refuse(context, name, attack.send(token), attack.accepted, retryForMs);
      }),
    ),
    ...insufficientSets(alternatives, context.declaredScopes).map(({ name: set, scopes }) =>
      toCase(`refuses ${set}`, (name) => refuse(context, name, tokenWith(context, scopes), [insufficientScope])),
    ),
    ...sufficientSets([...alternatives, ...withOptional]).map(({ name: set, scopes }) =>
      toCase(`accepts ${set}`, (name) => accept(context, name, tokenWith(context, scopes))),
    ),
  ];
}

/** Sends a request that must be refused, again and again while the API may not have learned of a change. */
async function refuse(
  context: CaseContext,
  name: string,
  transport: TokenTransport,
  accepted: readonly ExpectedRefusal[],
  retryForMs = 0,
): Promise<void> {
  const deadlineMs = performance.now() + retryForMs;
  for (;;) {
    const { response, reached } = await send(context, transport);
    const mismatches = [
      ...context.compareRefusal(response, accepted, context.operation.method !== 'HEAD'),
      ...compareReached(reached),
      ...context.documented.compare(response),
    ];
    if (mismatches.length === 0) context.refused.push({ name, reached, checked: reached.length });
    if (mismatches.length === 0 || performance.now() >= deadlineMs) return assertNoMismatch(name, mismatches);
    await wait(RETRY_MS);
  }
}

async function accept(context: CaseContext, name: string, transport: TokenTransport): Promise<void> {
  const { response } = await send(context, transport);
  const mismatches = [...compareAccepted(response), ...context.documented.compare(response)];
  if (mismatches.length === 0) context.accepted.add(response.status);
  assertNoMismatch(name, mismatches);
}

async function send(
  { call, documented, seen, prepare }: CaseContext,
  { headers, query }: TokenTransport,
): ReturnType<Target['call']> {
  const prepared = prepare();
  const separator = prepared.target.includes('?') ? '&' : '?';
  const target = query === undefined ? prepared.target : prepared.target + separator + query;
  const result = await call({ ...prepared, target, headers: { ...prepared.headers, ...headers } });
  const { status } = result.response;
  seen.add(documented.entryOf(status) ?? String(status));
  return result;
}

function tokenWith({ settings }: CaseContext, scopes: readonly string[] = []): TokenTransport {
  return bearer(settings.issuer.token({ scope: scopes.length === 0 ? undefined : scopes.join(' ') }));
}

function compareReached(reached: readonly string[]): readonly Mismatch[] {
  if (reached.length === 0) return [];
  return [{ what: 'handlers reached', got: [...new Set(reached)].join(', '), expected: 'none' }];
}

/** What no response to a good token may be; the rest is up to the document. */
function compareAccepted(response: ApiResponse): readonly Mismatch[] {
  const { status, headers } = response;
  const isRefused =
    status === 401 || status === 403 || headers['www-authenticate'] !== undefined || isOfUnknownKey(response);
  if (isRefused) {
    const got = `${describeRefusal(response)}, refused by the gate`;
    return [{ what: 'status', got, expected: 'the response of the handler' }];
  }
  if (status === 429) return [{ what: 'status', got: 429, expected: 'any other; raise the rate limit for tests' }];
  return status >= 500 ? [{ what: 'status', got: status, expected: 'below 500' }] : [];
}

/** Whether a gate could not verify the token, because its issuer has been asked about too many unknown keys. */
function isOfUnknownKey({ status, body }: ApiResponse): boolean {
  return status === 429 && codeOf(body) === 'too_many_unknown_keys';
}

function codeOf(body: unknown): unknown {
  return isObject(body) ? body['code'] : undefined;
}

/** The status with the `code` of the problem body, if any. */
function describeRefusal({ status, body }: ApiResponse): string {
  const code = codeOf(body);
  return typeof code === 'string' ? `${status} ${code}` : String(status);
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

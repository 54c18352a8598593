import { fail } from 'node:assert';
import { basename } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { didYouMean } from 'tillgate/internal';
import { layersOf } from '../audit/app-routes';
import { auditRoutes, describeFinding } from '../audit/audit-routes';
import type { RouteFindingKind } from '../audit/audit-routes';
import { apiUnderTest } from './api';
import type { ApiUnderTest } from './api';
import { attackCases } from './attacks';
import { noFindings } from './findings';
import type { Findings } from './findings';
import type { Operation } from './operation';
import { readContractOptions } from './options';
import type { ContractCasesOptions } from './options';
import { contractReport } from './report';
import type { ContractReport } from './report';
import { acceptanceParts, describeRefusal, detailOf, documentCase, isOfUnknownKey } from './requirements';
import { refusalParts, scopeCase, tokenParts } from './requirements';
import { assertNoMismatch } from './responses';
import { caseOf, send, sufficient } from './subject';
import type { ContractCase, Subject } from './subject';

/** The cases of one API. */
export interface ContractCases extends ReadonlyArray<ContractCase> {
  /** Says what the cases that have run so far have tested, and what not. */
  report(this: void): ContractReport;
}

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
  const api = apiUnderTest(settings);
  refuseUnknown(options.requests, api.operations);
  const findings = noFindings(MARGIN);
  for (const [operation, why] of api.withoutRequest) findings.of(operation).notTested = why;
  const subjects = api.tested.map((operation) => ({ operation, api, findings }));
  const isChosen = (what: ContractCase['class']): boolean =>
    what === undefined || !settings.classes?.length || settings.classes.includes(what);
  const cases = subjects.flatMap((subject) => {
    const tokens = tokenParts(subject);
    // Without a success no refusal proves anything.
    const scopes = scopeCase(subject, isChosen('scope'));
    const attacks = attackCases(subject).filter((one) => isChosen(one.class));
    findings.reserve += tokens.length + refusalParts(subject).length + acceptanceParts(subject).length;
    // A good token removes the object that the attacks must meet.
    const others = subject.operation.method === 'DELETE' ? [...attacks, scopes] : [scopes, ...attacks];
    const token = tokens.length > 0 ? [caseOf(subject, 'token', 'refuses what any gate refuses', tokens)] : [];
    return [...token, ...others, documentCase(subject)].filter((one) => one === scopes || isChosen(one.class));
  });
  const ofApi = [...removedKeyCase(subjects), ...appCases(api, findings)].filter((one) => isChosen(one.class));
  const chosen = [...trustCase(subjects), ...cases, ...ofApi];
  return Object.assign(chosen, { report: () => contractReport(api.operations, findings) });
}

/** A misspelt name would have no effect, silently. */
function refuseUnknown(requests: ContractCasesOptions['requests'], operations: readonly Operation[]): void {
  if (typeof requests !== 'object') return;
  const known = operations.flatMap(({ name, operation }) => [operation.operationId ?? name, name]);
  const unknown = Object.keys(requests).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new TypeError(
    `contractCases(): "requests" names ${unknown}, which is not an operation${didYouMean(unknown, known)}`,
  );
}

/** Refusals that do not say what the token lacks. */
const OF_SHAPE = /wrong_type|claims|generation|invalid_token/;

/**
 * Makes the case that comes first: whether the API trusts the issuer at all. Without that every other case fails, for a
 * reason that none of them can name. Calls one operation after the other until one accepts a good token; an operation
 * that needs none by mistake proves nothing.
 */
function trustCase(subjects: readonly Subject[]): readonly ContractCase[] {
  const needToken = subjects.filter(({ operation }) => operation.access === 'token');
  if (needToken.length === 0) return [];
  const name = 'The API accepts tokens of the test issuer';

  async function run(): Promise<void> {
    const refusals: string[] = [];
    for (const subject of needToken) {
      const { response: withoutToken } = await send(subject, {});
      if (withoutToken.status !== 401) continue;
      const transport = sufficient(subject);
      const { response } = await send(subject, transport);
      const isRefused = [401, 503].includes(response.status) || response.dropped !== undefined;
      // A DELETE works once: this may be the time.
      if (response.status < 300) subject.findings.of(subject.operation).accepted.add(response.status);
      if (!isRefused && !isOfUnknownKey(response)) return;
      if (subject.operation.hasKey) continue;
      const text = describeRefusal(response);
      const detail = refusals.length === 0 && OF_SHAPE.test(text) ? await detailOf(subject, transport) : undefined;
      refusals.push(`${subject.operation.name} responded ${text}${detail === undefined ? '' : ` (${detail})`}`);
    }
    const [first, ...others] = refusals;
    if (first === undefined) return;
    const more = others.length === 0 ? '' : `, and so did ${others.length} more`;
    const hint = 'Give authenticate() the options of the issuer, or configure its issuer, audience and keys';
    fail(`${name}\n  None of this issuer's tokens is accepted: ${first}${more}. ${hint}.`);
  }
  return [{ name, run }];
}

/**
 * Makes the case of a key that signed and was removed: at the end, because the issuer signs with another one from then on. A
 * token of that one has the gate of Tillgate read the keys again; when others do is up to their caches.
 */
function removedKeyCase(subjects: readonly Subject[]): readonly ContractCase[] {
  const name = 'The API refuses a token whose key was removed';

  async function run(): Promise<void> {
    const subject = subjects.find(({ operation: one, findings }) => one.access === 'token' && findings.of(one).good);
    const { issuer } = subject?.api.settings ?? {};
    if (!subject || !issuer?.rotate || !issuer.removeKey || !subject.api.rules.isStrict()) return;
    const removed = issuer.rotate();
    const transport = sufficient(subject);
    issuer.rotate();
    const before = await send(subject, transport);
    issuer.removeKey(removed);
    issuer.rotate();
    const other = await send(subject, sufficient(subject));
    if (before.response.status >= 300 || other.response.status >= 300) return;
    const exchange = await send(subject, transport);
    const { status: got } = exchange.response;
    assertNoMismatch(name, got >= 400 ? [] : [{ what: 'status', got, expected: 401 }], exchange);
  }
  return subjects.some(({ operation }) => operation.access === 'token') ? [{ name, class: 'token', run }] : [];
}

/** Probes, and the document itself with its pages: no part of the API. */
const TOOLS = /^\/(?:healthz?|livez?|readyz?|docs|openapi\.(?:json|ya?ml)|favicon\.ico)$/;

/** Cases that need the routes of an Express app. */
function appCases({ settings, basePath, stop }: ApiUnderTest, { refused }: Findings): readonly ContractCase[] {
  const { app, openapi, ignore } = settings;
  if (!app || layersOf(app) === undefined) return [];
  const document = typeof openapi === 'string' ? basename(openapi) : 'the document';

  function routeCase(name: string, kind: RouteFindingKind): ContractCase {
    function check(): void {
      const findings = auditRoutes(app as object, openapi, { basePath: basePath || '/', ignore });
      const isTool = ({ method, path }: (typeof findings)[number]): boolean =>
        kind === 'undocumented-route' && !settings.strict && method === 'GET' && TOOLS.test(path);
      const got = findings.filter((one) => one.kind === kind && !isTool(one)).map(describeFinding);
      const skip = { what: 'paths of another API or of tools', got: 'not skipped', expected: 'in the option "ignore"' };
      const hints = kind === 'undocumented-route' ? [skip] : [];
      assertNoMismatch(name, got.length === 0 ? [] : [{ what: 'routes', got, expected: [] }, ...hints]);
    }
    return { name, class: 'routes', run: () => Promise.resolve().then(check) };
  }
  return [
    routeCase(`The app has no route that ${document} does not document`, 'undocumented-route'),
    routeCase(`The app has a route for every operation of ${document}`, 'missing-route'),
    lateHandlerCase(stop, refused),
  ];
}

/** A guard may refuse and still call `next()` when the response is already sent. */
function lateHandlerCase(stop: ApiUnderTest['stop'], refused: Findings['refused']): ContractCase {
  const name = 'The app calls no handler after it has refused a request';
  return {
    name,
    class: 'routes',
    async run() {
      if (refused.length > 0) await wait(LATE_MS);
      stop();
      const [first, ...others] = refused.filter(({ reached, checked }) => reached().length > checked);
      if (!first) return;
      const more = others.length === 0 ? '' : ` and ${others.length} more`;
      const got = `${first.reached().slice(first.checked).join(', ')} (${first.name})${more}`;
      assertNoMismatch(name, [{ what: 'handlers reached later', got, expected: 'none' }]);
    },
  };
}

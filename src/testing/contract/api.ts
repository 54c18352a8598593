import { attempt } from 'tillgate/internal';
import { describeRoutes, wayTo } from '../audit/app-routes';
import { basePathOf, declaredScopes, everyOperation, ignoredPaths, loadDocument, nameOf } from '../openapi/document';
import type { ContractDocument, LocatedOperation } from '../openapi/document';
import { noFindings } from './findings';
import type { Findings } from './findings';
import type { ContractSettings } from './options';
import { documentedResponses, refusalRules } from './responses';
import type { ApiRequest, DocumentedResponses, RefusalRules } from './responses';
import { prepareRequest } from './samples';
import { PARSERS } from './spy';
import { appTarget, urlTarget, watchLimit } from './target';
import type { Target } from './target';

/** The API under test: its document, its operations, and how it is called. */
export interface ApiUnderTest {
  readonly document: ContractDocument;
  /** Prefix of every path of the document. */
  readonly basePath: string;
  readonly settings: ContractSettings;
  readonly operations: readonly LocatedOperation[];
  /** Of the operations that can be tested. */
  readonly contexts: readonly CaseContext[];
  readonly call: Target['call'];
  readonly target: Target;
  readonly rules: RefusalRules;
  readonly declaredScopes: readonly string[];
  /** Whether superseded tokens must be refused. */
  readonly hasGenerations: boolean;
  /** Whether every row of the attacks is tried. */
  readonly isFull: boolean;
  /** Path of an operation that anybody may call. */
  readonly publicPath: string;
  /** Collects what was refused. */
  readonly refused: Refused[];
  /** Requests of the cases that are not attacks: a rate limit must leave them. */
  reserve: number;
  /** Whether an attack would take a request of the rate limit that later cases need. */
  readonly isLimited: () => boolean;
  /** Methods that the document has for a path. */
  readonly methodsOf: (path: string) => readonly string[];
  readonly contextOf: (method: string, path: string) => CaseContext | undefined;
  /** The handler of an operation, where the app shows it. */
  readonly handlerOf: (context: CaseContext) => object | undefined;
  /** The operation whose cases try every attack on the gate that the two have in common; may be the same. */
  readonly representativeOf: (context: CaseContext) => CaseContext;
}

/** One operation under test. */
export interface CaseContext {
  /** `GET /orders/{id}` */
  readonly name: string;
  readonly operation: LocatedOperation;
  readonly api: ApiUnderTest;
  readonly findings: Findings;
  readonly documented: DocumentedResponses;
  /** Makes the request, good except for its missing token. */
  readonly prepare: () => ApiRequest;
}

/** A refused request whose handlers may still be called. */
export interface Refused {
  /** Name of the case. */
  readonly name: string;
  readonly reached: () => readonly string[];
  /** How many entries of `reached` the case has checked itself. */
  readonly checked: number;
}

/** Reads first, removals last, so that no case removes what a later one needs. */
const ORDER = ['GET', 'HEAD', 'QUERY', 'OPTIONS', 'TRACE', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** A document with more protected operations is attacked quickly unless told otherwise. */
const FULL_UP_TO = 12;

/** Reads the document, and connects to the app or the server. */
export function apiUnderTest(settings: ContractSettings): ApiUnderTest {
  const document = loadDocument(settings.openapi);
  const basePath = settings.basePath ?? basePathOf(document);
  const isIgnored = ignoredPaths(settings.ignore);
  const operations = everyOperation(document, basePath)
    .filter(({ path }) => !isIgnored(path))
    .sort((a, b) => ORDER.indexOf(a.method) - ORDER.indexOf(b.method));
  const guarded = operations.filter(({ access }) => access === 'token');
  const { app, url } = settings;
  const ways = new Map(operations.map((one) => [one, app && wayTo(app, one.method, one.path)]));
  const gates = app === undefined ? [] : [...ways.values()].flatMap((way) => way?.before ?? []);
  const target = app ? appTarget(app, settings) : urlTarget(url as URL, settings.headers);
  const limit = watchLimit(target.call);
  const responsesOf = documentedResponses(document, basePath);
  const contexts: CaseContext[] = [];
  const representatives = new Map<string, CaseContext>();

  /** Operations behind the same functions have the same gate; over HTTP all are taken for one until they differ. */
  function gateOf(operation: LocatedOperation): string {
    const before = ways.get(operation)?.before.filter((one) => !PARSERS.includes((one as { name: string }).name));
    return (before ?? []).map(numberOf).join(' ');
  }

  const fixed = new Set(operations.filter(({ path }) => !path.includes('{')).map(({ path }) => path));
  const isFixed = (path: string): boolean => fixed.has(path);

  const api: ApiUnderTest = {
    ...{ document, basePath, settings, operations, contexts, target, call: limit.call, refused: [], reserve: 0 },
    rules: refusalRules({ ...settings, hasGate: app !== undefined && hasGate(app) }),
    declaredScopes: declaredScopes(document),
    hasGenerations: settings.generations ?? gates.some(discardsTokens),
    isFull: settings.depth === undefined ? guarded.length <= FULL_UP_TO : settings.depth === 'full',
    publicPath: operations.find(isPlainAndPublic)?.path ?? '/health',
    isLimited: () => limit.left() <= api.reserve,
    methodsOf: (path) => operations.filter((one) => one.path === path).map(({ method }) => method),
    contextOf: (method, path) =>
      contexts.find(({ operation }) => operation.method === method && operation.path === path),
    handlerOf: ({ operation }) => ways.get(operation)?.handler,
    representativeOf: (context) => representatives.get(gateOf(context.operation)) ?? context,
  };
  for (const operation of operations.filter(({ access }) => access === 'anybody' || access === 'token')) {
    const context: CaseContext = {
      ...{ name: nameOf(operation), operation, api, findings: noFindings(), documented: responsesOf(operation) },
      prepare: once(() => prepareRequest(document, operation, settings.requestOf(operation), isFixed)),
    };
    contexts.push(context);
    const gate = gateOf(operation);
    if (operation.access === 'token' && !representatives.has(gate)) representatives.set(gate, context);
  }
  return api;
}

function hasGate(app: object): boolean {
  return attempt(() => describeRoutes(app).routes.some(({ gate }) => gate !== 'none')) ?? false;
}

/** Whether a function is a gate of Tillgate that checks generations. */
function discardsTokens(one: object): boolean {
  const { ready, status } = one as { ready?: unknown; status?: () => { issuers: readonly object[] } };
  if (typeof ready !== 'function' || typeof status !== 'function') return false;
  return attempt(() => status().issuers.some((issuer) => 'generations' in issuer)) ?? false;
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

function once<Value extends object>(make: () => Value): () => Value {
  let made: Value | undefined;
  return () => (made ??= make());
}

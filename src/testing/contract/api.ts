import type { Gate } from 'tillgate';
import { attempt, gateOf } from 'tillgate/internal';
import { describeRoutes, wayTo } from '../audit/app-routes';
import { basePathOf, declaredScopes, loadDocument } from '../openapi/document';
import type { ContractDocument } from '../openapi/document';
import { reshaped } from '../issuer/test-issuer';
import { operationsOf } from './operation';
import type { Operation } from './operation';
import type { ContractSettings } from './options';
import { refusalRules } from './responses';
import type { RefusalRules } from './responses';
import { PARSERS } from './spy';
import { appTarget, urlTarget } from './target';
import type { Target } from './target';

/** The API under test: what its document says, and how it is called. */
export interface ApiUnderTest extends Target {
  readonly document: ContractDocument;
  /** Prefix of every path of the document. */
  readonly basePath: string;
  readonly settings: ContractSettings;
  /** All of the document, reads first. */
  readonly operations: readonly Operation[];
  /** Those that a bearer token, or nothing, opens. */
  readonly tested: readonly Operation[];
  /** The others of those, with the reason: what is not valid by the document is never sent. */
  readonly withoutRequest: ReadonlyMap<Operation, string>;
  readonly rules: RefusalRules;
  readonly declaredScopes: readonly string[];
  /** The gate of Tillgate that the app has, where it can be seen. */
  readonly gate: Gate | undefined;
  /** Whether superseded tokens must be refused. */
  readonly hasGenerations: boolean;
  /** Whether every row of the attacks is tried. */
  readonly isFull: boolean;
  /** Path of an operation that anybody may call. */
  readonly publicPath: string;
  /** Methods that the document has for a path. */
  readonly methodsOf: (path: string) => readonly string[];
  readonly find: (method: string, path: string) => Operation | undefined;
  /** The handler of an operation, where the app shows it. */
  readonly handlerOf: (operation: Operation) => object | undefined;
  /** The operation whose cases try every attack on the gate that the two have in common; may be the same. */
  readonly representativeOf: (operation: Operation) => Operation;
}

/** A document with more protected operations is attacked quickly unless told otherwise. */
const FULL_UP_TO = 12;

/** Reads the document, and connects to the app or the server. */
export function apiUnderTest(given: ContractSettings): ApiUnderTest {
  const document = loadDocument(given.openapi);
  const basePath = given.basePath ?? basePathOf(document);
  const operations = operationsOf(document, basePath, given);
  const callable = operations.filter(({ access }) => access === 'anybody' || access === 'token');
  const withoutRequest = new Map(callable.flatMap((one) => whyNoRequest(one)));
  const tested = callable.filter((one) => !withoutRequest.has(one));
  const guarded = tested.filter(({ access }) => access === 'token');
  const pages = operations.filter(({ access, method }) => access === 'anybody' && method === 'GET');
  const { app, url, depth, generations } = given;
  const ways = new Map(operations.map((one) => [one, app && wayTo(app, one.method, one.path)]));
  const gate = [...ways.values()].flatMap((way) => way?.before ?? []).find((one) => gateOf(one));
  const routes = (app && attempt(() => describeRoutes(app).routes)) ?? [];
  const [shape] = (gate && gateOf(gate)?.settings.issuers) ?? [];
  const settings = shape ? { ...given, issuer: reshaped(given.issuer, shape) } : given;

  /** Operations behind the same functions up to the gate have the same one; over HTTP all are taken for one until they differ. */
  function functionsBefore(operation: Operation): readonly object[] {
    const all = ways.get(operation)?.before ?? [];
    const last = all.findLastIndex((one) => gateOf(one));
    return all
      .slice(0, last < 0 ? undefined : last + 1)
      .filter((one) => !PARSERS.includes((one as { readonly name: string }).name));
  }
  function representativeOf(operation: Operation): Operation {
    const own = functionsBefore(operation);
    const isSame = (other: readonly object[]): boolean =>
      other.length === own.length && other.every((one, index) => one === own[index]);
    return guarded.find((one) => isSame(functionsBefore(one))) ?? operation;
  }

  return {
    document,
    basePath,
    settings,
    operations,
    tested,
    withoutRequest,
    representativeOf,
    ...(app ? appTarget(app, settings) : urlTarget(url as URL, settings.headers)),
    gate: gate as Gate | undefined,
    rules: refusalRules({ ...settings, hasGate: routes.some((one) => one.gate !== 'none') }),
    declaredScopes: declaredScopes(document),
    hasGenerations: generations ?? [...ways.values()].some((way) => way?.before.some(discardsTokens)),
    isFull: depth === undefined ? guarded.length <= FULL_UP_TO : depth === 'full',
    publicPath: pages.find(({ path }) => !path.includes('{'))?.path ?? '/health',
    methodsOf: (path) => operations.filter((one) => one.path === path).map(({ method }) => method),
    find: (method, path) => tested.find((one) => one.method === method && one.path === path),
    handlerOf: (operation) => ways.get(operation)?.handler,
  };
}

function whyNoRequest(operation: Operation): readonly (readonly [Operation, string])[] {
  try {
    operation.request();
    return [];
  } catch (error) {
    return [[operation, (error as Error).message]];
  }
}

/** Whether a function is a gate of Tillgate that checks generations. */
function discardsTokens(one: object): boolean {
  const { ready, status } = one as { ready?: unknown; status?: () => { issuers: readonly object[] } };
  if (typeof ready !== 'function' || typeof status !== 'function') return false;
  return attempt(() => status().issuers.some((issuer) => 'generations' in issuer)) ?? false;
}

import { isObject } from 'tillgate/internal';
import type { TokenTransport } from './credentials';
import { send, tokenWith } from './operation';
import type { CaseContext } from './operation';
import { mediaTypeOf } from './responses';
import type { ApiRequest, ApiResponse } from './responses';
import type { Exchange } from './target';
import type { Variant } from './variants';

/** What attacks need to know about the whole API. */
export interface AttackedApi {
  readonly document: object;
  /** All operations that are tested. */
  readonly contexts: readonly CaseContext[];
  /** Methods that the document has for a path. */
  readonly methodsOf: (path: string) => readonly string[];
  readonly publicPath: string;
  /** The operation of a method and path. */
  readonly operationOf: (method: string, path: string) => CaseContext | undefined;
  /** The handler of an operation, where the app shows it. */
  readonly handlerOf: (context: CaseContext) => object | undefined;
}

/** Something that was open, or told too much; with what was sent, where it was one request. */
export type Finding = string | { readonly text: string; readonly exchange: Exchange } | undefined;

export async function eachOf<One, Result>(
  all: readonly One[],
  look: (one: One) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (const one of all) results.push(await look(one));
  return results;
}

const MAX_REDIRECTS = 2;

/** A token with the scopes of the first alternative. */
export function sufficient(context: CaseContext, clientId?: string): TokenTransport {
  return tokenWith(context, context.operation.security[0], { clientId });
}

/** Somebody who may not call an operation, and the status that its plain request gets. */
type Caller = readonly [who: string, transport: TokenTransport, plain: number | undefined];

export const NOBODY = 'without a token';
export const WITHOUT_SCOPES = 'with a token without scopes';
const weakCallers = new WeakMap<CaseContext, Promise<readonly Caller[]>>();

/**
 * Callers who may not: without a token, and with a good one that has no scope. Those whose plain request is open are left
 * out: that is the finding of another case.
 */
export function weakCredentials(context: CaseContext, api: AttackedApi): Promise<readonly Caller[]> {
  const known = weakCallers.get(context) ?? findWeak();
  weakCallers.set(context, known);
  return known;

  async function findWeak(): Promise<readonly Caller[]> {
    const needsScopes = context.operation.security.every((scopes) => scopes.length > 0);
    const callers = [[NOBODY, {}], ...(needsScopes ? [[WITHOUT_SCOPES, tokenWith(context)] as const] : [])] as const;
    const closed = await eachOf(callers, async ([who, transport]): Promise<readonly Caller[]> => {
      const { exchange, isOpen } = await probe(context, api, transport);
      return isOpen ? [] : [[who, transport, exchange?.response.status]];
    });
    return closed.flat();
  }
}

/** Sends another form of a request, which must stay closed to all of these callers; says for whom it was open. */
export async function findOpen(
  context: CaseContext,
  api: AttackedApi,
  { name, change, parts = [] }: Variant,
  callers: readonly Caller[],
): Promise<readonly Finding[]> {
  const found: Finding[] = [];
  // The token first: it gets further.
  for (const [who, transport, plain] of callers.toReversed()) {
    const { exchange, isOpen } = await probe(context, api, transport, change);
    if (!exchange) continue;
    const { status } = exchange.response;
    if (isOpen) found.unshift({ text: `${name}${who && `, ${who}`}: ${status}`, exchange });
    // What a token does not find is not there without it.
    if (status !== plain && NOT_THERE.includes(status)) break;
  }
  if (found.length === 0) return [];
  const single = (await eachOf(parts, (part) => findOpen(context, api, part, callers))).flat();
  return single.length > 0 ? single : found.slice(0, 1);
}

export const NOT_THERE: readonly number[] = [404, 405];

/** Sends a request that must stay closed; says what it got when it was open. */
export async function openWith(
  context: CaseContext,
  api: AttackedApi,
  what: string,
  transport: TokenTransport,
): Promise<Finding> {
  const { exchange, isOpen } = await probe(context, api, transport);
  return exchange && isOpen ? { text: `${what}: ${exchange.response.status}`, exchange } : undefined;
}

/** Sends a request, and follows redirects; no exchange where it was not sent or got no response. */
async function probe(
  context: CaseContext,
  api: AttackedApi,
  transport: TokenTransport,
  change?: (request: ApiRequest) => ApiRequest,
): Promise<{ readonly exchange?: Exchange; readonly isOpen: boolean }> {
  if (context.isLimited()) {
    context.wasLimited = true;
    return { isOpen: false };
  }
  try {
    let exchange = await send(context, transport, change);
    for (let count = 0; count < MAX_REDIRECTS; count++) {
      const { location } = exchange.response.headers;
      const { status } = exchange.response;
      if (status < 300 || status > 399 || !location?.startsWith('/')) break;
      const { request } = exchange;
      exchange = await context.call({ ...request, target: location, method: status === 308 ? request.method : 'GET' });
    }
    return { exchange, isOpen: await isOpenBy(context, api, exchange) };
  } catch {
    // A server may end the connection of a request that it cannot read.
    return { isOpen: false };
  }
}

/** Shorter texts are in many responses. */
const TELLING_LENGTH = 8;

/** Texts that a response to a good token had; not those of the request, and of the document. */
export async function secretsOf(context: CaseContext, api: AttackedApi): Promise<readonly string[]> {
  if (!context.good) {
    const { response } = await send(context, sufficient(context));
    if (response.status < 300) context.good = response;
  }
  const { target, body = '' } = context.prepare();
  const known = `${target} ${body} ${textOf(api.document)}`;
  const texts = textsIn(context.good?.body).filter((text) => text.length >= TELLING_LENGTH);
  return [...new Set(texts)].filter((text) => !known.includes(text));
}

const documentTexts = new WeakMap<object, string>();

function textOf(document: object): string {
  const text = documentTexts.get(document) ?? JSON.stringify(document);
  documentTexts.set(document, text);
  return text;
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}

/** Says whether an operation has changed something meanwhile; `undefined` where that cannot be read by its path. */
export async function watchEffect(
  { operation }: CaseContext,
  api: AttackedApi,
): Promise<(() => Promise<boolean>) | undefined> {
  const reader = api.operationOf('GET', operation.path);
  if (['GET', 'HEAD', 'OPTIONS'].includes(operation.method) || reader?.operation.access !== 'token') return undefined;
  const read = async (): Promise<ApiResponse> => (await send(reader, sufficient(reader))).response;
  const [first, second] = [await read(), await read()];
  // What changes by itself says nothing.
  if (first.status >= 300 || first.text !== second.text) return undefined;
  return async () => (await read()).text !== second.text;
}

/** Whether an operation has responded to a request: by its handler where that can be seen, else by what it sent. */
async function isOpenBy(
  context: CaseContext,
  api: AttackedApi,
  { request, response, trace }: Exchange,
): Promise<boolean> {
  if (request.method === 'OPTIONS' && isListOfMethods(response)) return false;
  if (response.status < 300 || response.status === 304) {
    const handler = api.handlerOf(context);
    if (trace.ran.size > 0)
      return handler === undefined ? !(await isUsual(context, request, response)) : trace.ran.has(handler);
    const isLikely = context.good ? resembles(response, context.good) : request.method === context.operation.method;
    return isLikely && !(await isUsual(context, request, response));
  }
  return false;
}

/** Express responds to OPTIONS with the methods of a route. */
function isListOfMethods({ text }: ApiResponse): boolean {
  return /^\s*(?:[A-Z]+[\s,]*)*$/.test(text);
}

/** Whether a response has the form of one to a good token. */
function resembles(response: ApiResponse, good: ApiResponse): boolean {
  if (response.status === 101 || response.status === 304) return true;
  const [type, other] = [response, good].map(({ headers }) => mediaTypeOf(headers['content-type']));
  if (type !== other || Array.isArray(response.body) !== Array.isArray(good.body)) return false;
  if (!isObject(response.body) || !isObject(good.body)) return response.status === good.status;
  const names = Object.keys(good.body);
  if (names.length === 0) return response.text === good.text;
  return names.some((name) => Object.hasOwn(response.body as object, name));
}

/** Whether anybody gets the same for a path that does not exist: a page of a web app, a catch-all. */
async function isUsual(context: CaseContext, request: ApiRequest, response: ApiResponse): Promise<boolean> {
  const nowhere = await context.call({ ...request, target: '/contract-cases/nowhere' });
  return nowhere.response.status === response.status && nowhere.response.text === response.text;
}

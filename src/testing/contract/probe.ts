import { isObject } from 'tillgate/internal';
import type { TokenTransport } from './credentials';
import type { Caller } from './findings';
import type { Operation } from './operation';
import type { Variant } from './requests';
import { mediaTypeOf, REFUSALS } from './responses';
import type { ApiRequest, ApiResponse } from './responses';
import { eachOf, requestOf, send, sufficient, tokenWith } from './subject';
import type { Subject } from './subject';
import type { Exchange } from './target';

/** Something that was open, or told too much; with what was sent, where it was one request. */
export type Finding = string | { readonly text: string; readonly exchange: Exchange } | undefined;

/** What an attack has found, or why it has nothing to try. */
export type Found = readonly Finding[] | string;

export const NOBODY = 'without a token';
export const WITHOUT_SCOPES = 'with a token without scopes';

/**
 * Callers who may not: without a token, and with a good one that has no scope. Those whose plain request is open are left
 * out: that is the finding of another case.
 */
export function weakCredentials(subject: Subject): Promise<readonly Caller[]> {
  return (subject.findings.of(subject.operation).weakCallers ??= findWeak());

  async function findWeak(): Promise<readonly Caller[]> {
    const needsScopes = subject.operation.security.every((scopes) => scopes.length > 0);
    const callers = [[NOBODY, {}], ...(needsScopes ? [[WITHOUT_SCOPES, tokenWith(subject)] as const] : [])] as const;
    const closed = await eachOf(callers, async ([who, transport]): Promise<readonly Caller[]> => {
      const { exchange, isOpen } = await probe(subject, transport);
      return isOpen ? [] : [[who, transport, exchange?.response]];
    });
    return closed.flat();
  }
}

/** Sends another form of a request, which must stay closed to all of these callers; says for whom it was open. */
export async function findOpen(
  subject: Subject,
  { name, change, parts = [], isElsewhere }: Variant,
  callers: readonly Caller[],
): Promise<readonly Finding[]> {
  const found: Finding[] = [];
  // The token first: it gets further.
  for (const [who, transport, plain] of callers.toReversed()) {
    const { exchange, isOpen } = await probe(subject, transport, change, isElsewhere);
    if (!exchange) continue;
    const { status } = exchange.response;
    // What the plain refusal shows is the finding of another case.
    const isSilent = status >= 300 && plain !== undefined && sharedData(subject, plain) === undefined;
    const shown = isSilent ? sharedData(subject, exchange.response) : undefined;
    const told = shown === undefined ? status : `${status} with "${shown}"`;
    if (isOpen || shown !== undefined) found.unshift({ text: `${name}${who && `, ${who}`}: ${told}`, exchange });
    // What a token does not find is not there without it.
    if (status !== plain?.status && NOT_THERE.includes(status)) break;
  }
  if (found.length === 0) return [];
  const single = (await eachOf(parts, (part) => findOpen(subject, { ...part, isElsewhere }, callers))).flat();
  return single.length > 0 ? single : found.slice(0, 1);
}

const NOT_THERE: readonly number[] = [404, 405];

/** Sends a request that must stay closed; says what it got when it was open. */
export async function openWith(subject: Subject, what: string, transport: TokenTransport): Promise<Finding> {
  const { exchange, isOpen } = await probe(subject, transport);
  return exchange && isOpen ? { text: `${what}: ${exchange.response.status}`, exchange } : undefined;
}

/**
 * Sends a request; no exchange where it was not sent or got no response.
 *
 * @param isElsewhere - whether another operation, or a page for anybody, may respond to it
 */
async function probe(
  subject: Subject,
  transport: TokenTransport,
  change?: (request: ApiRequest) => ApiRequest,
  isElsewhere = false,
): Promise<{ readonly exchange?: Exchange; readonly isOpen: boolean }> {
  if (isLimited(subject)) return { isOpen: false };
  try {
    const exchange = await send(subject, transport, change);
    return { exchange, isOpen: await isOpenBy(subject, exchange, isElsewhere) };
  } catch {
    // A server may end the connection of a request that it cannot read.
    return { isOpen: false };
  }
}

/** Whether a rate limit leaves no request for an attack: later cases need them. */
function isLimited({ operation, api, findings }: Subject): boolean {
  if (api.left() > findings.reserve) return false;
  findings.of(operation).wasLimited = true;
  return true;
}

/** Whether the operation has responded: its handler ran, its data is in the response, or nothing else can have responded. */
async function isOpenBy(subject: Subject, exchange: Exchange, isElsewhere: boolean): Promise<boolean> {
  const { request, response, trace } = exchange;
  const { api, operation, findings } = subject;
  if (response.status >= 300 && response.status !== 304) return false;
  // Express responds to OPTIONS with the methods of a route.
  if (request.method === 'OPTIONS' && /^\s*(?:[A-Z]+[\s,]*)*$/.test(response.text)) return false;
  const handler = api.handlerOf(operation);
  if (handler !== undefined && trace.ran.has(handler)) return true;
  // A page of a web app, a catch-all: anybody gets the same for a path that does not exist.
  if (isAlike(await api.call({ ...request, target: NOWHERE }), exchange)) return false;
  if (isHead(subject, request)) return true;
  const isOther = isElsewhere && api.operations.some((one) => one !== operation && isAt(one, request));
  if (!isOther && sharedData(subject, response) !== undefined) return true;
  // The route of another operation has responded.
  if (handler !== undefined && trace.ran.size > 0) return false;
  if (!isElsewhere) return true;
  const { good } = findings.of(operation);
  if (good) return resembles(response, good);
  return request.method === operation.method || !api.methodsOf(operation.path).includes(request.method);
}

/** Whether a request is one of an operation, by its method and path. */
function isAt({ method, path }: Operation, request: ApiRequest): boolean {
  const [asked, documented] = [request.target.split('?', 1)[0] ?? '', path].map((text) => text.split('/'));
  const isSame = (part: string, at: number): boolean => part.includes('{') || part === asked?.[at];
  return method === request.method && documented?.length === asked?.length && documented?.every(isSame) === true;
}

/** A HEAD is open where the GET of its path is closed. */
function isHead({ operation }: Subject, { method, target }: ApiRequest): boolean {
  return method === 'HEAD' && operation.method === 'GET' && !target.includes('..');
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

const NOWHERE = '/contract-cases/nowhere';

type Sent = Pick<Exchange, 'request' | 'response'>;

/** Whether two responses are the same, apart from the method, the path, numbers and ids in them. */
export function isAlike(one: Sent, other: Sent): boolean {
  const [a, b] = [one, other].map(({ request, response }) => {
    const named = [request.target, request.target.split('?', 1)[0] ?? '', request.method];
    const text = named.reduce((rest, part) => rest.replaceAll(part, '*'), response.text);
    return `${response.status} ${mediaTypeOf(response.headers['content-type'])} ${text.replace(/[\da-f-]*\d[\da-f-]*/gi, '0')}`;
  });
  return a === b;
}

/** A method that no API uses: what responds to it is not the handler of another one. */
const UNUSED_METHOD = 'UNLINK';
/** Says nothing about the handler: a limit, an outage, a method that is not there. */
const NEUTRAL: readonly number[] = [405, 429, 501, 503];

/**
 * Finds methods that the document does not have for a path, and that respond to weak callers with anything else than the
 * path does to a method that nobody uses: 204, a body, 404 for an id that does not exist.
 */
export async function findOpenMethods(
  subject: Subject,
  methods: readonly string[],
  callers: readonly Caller[],
): Promise<readonly Finding[]> {
  const { api } = subject;
  const found = await eachOf(methods, (method) =>
    eachOf(callers, async ([who, transport]): Promise<Finding> => {
      if (isLimited(subject)) return undefined;
      try {
        const withBody = (request: ApiRequest): ApiRequest =>
          request.body === undefined && /^P/.test(method)
            ? { ...request, body: '{}', headers: { ...request.headers, 'content-type': 'application/json' } }
            : request;
        const as = (other: string) => (request: ApiRequest) => withBody({ ...request, method: other });
        const exchange = await send(subject, transport, as(method));
        const { status } = exchange.response;
        if (REFUSALS.slice(1).includes(status) || NEUTRAL.includes(status) || Math.trunc(status / 100) === 3)
          return undefined;
        const unused = await send(subject, transport, as(UNUSED_METHOD));
        const nowhere = await api.call(as(method)({ ...exchange.request, target: NOWHERE }));
        if (isAlike(nowhere, exchange) || (status >= 300 && isAlike(unused, exchange))) return undefined;
        // A parser of bodies may refuse before the gate.
        if ([400, 411, 413, 415].includes(status) && !REFUSALS.slice(1).includes(unused.response.status))
          return undefined;
        return { text: `by ${method}, ${who}: ${status}`, exchange };
      } catch {
        return undefined;
      }
    }),
  );
  return found.flat();
}

/** Shorter texts are in many responses. */
const TELLING_LENGTH = 8;

/** Makes sure that there is a response to a good token. */
export async function requireGood(subject: Subject): Promise<ApiResponse | undefined> {
  const found = subject.findings.of(subject.operation);
  if (found.good) return found.good;
  const { response } = await send(subject, sufficient(subject));
  if (response.status < 300) found.good = response;
  return found.good;
}

/**
 * What a response, its Location included, has in common with one to a good token: a text, or a member with its value; not
 * what the request or the document says.
 */
export function sharedData(subject: Subject, { text, body, headers }: ApiResponse): string | undefined {
  const { operation, findings, api } = subject;
  const { good } = findings.of(operation);
  if (!good) return undefined;
  const { target, body: sent = '' } = requestOf(subject);
  const known = `${decodeURIComponent(target.replace(/%(?![\da-f]{2})/gi, '%25'))} ${sent} ${textOf(api.document)}`;
  const members = new Set(leavesOf(body).map(([name, value]) => `${name}: ${String(value)}`));
  const isShared = ([name, value]: readonly [string, string | number]): boolean => {
    if (typeof value === 'string' && value.length >= TELLING_LENGTH)
      return text.includes(value) || headers.location?.includes(value) === true;
    return String(value).length > 1 && name !== '' && members.has(`${name}: ${String(value)}`);
  };
  const shared = leavesOf(good.body).find((leaf) => isShared(leaf) && !known.includes(String(leaf[1])));
  return shared && (shared[0] === '' ? String(shared[1]) : `${shared[0]}: ${String(shared[1])}`);
}

const documentTexts = new WeakMap<object, string>();

function textOf(document: object): string {
  const text = documentTexts.get(document) ?? JSON.stringify(document);
  documentTexts.set(document, text);
  return text;
}

/** Every text and number of a value, with the name of its member. */
export function leavesOf(value: unknown, name = ''): readonly (readonly [name: string, value: string | number])[] {
  if (typeof value === 'string' || typeof value === 'number') return [[name, value]];
  if (Array.isArray(value)) return value.flatMap((one) => leavesOf(one, name));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([member, inner]) => leavesOf(inner, member));
}

/** Watches whether an operation changes what a GET of its path, or of a path above it, returns; a text says why not. */
export async function watchEffect(
  subject: Subject,
): Promise<string | { readonly name: string; readonly hasChanged: () => Promise<boolean> }> {
  const { operation, api } = subject;
  if (['GET', 'HEAD', 'OPTIONS'].includes(operation.method)) return 'it changes nothing';
  const pathOf = (one: Operation): string => requestOf({ ...subject, operation: one }).target.split('?', 1)[0] ?? '';
  const own = pathOf(operation);
  const [reader] = api.tested
    .filter(({ method, access }) => method === 'GET' && access === 'token')
    .filter((one) => own === pathOf(one) || own.startsWith(`${pathOf(one)}/`))
    .sort((a, b) => pathOf(b).length - pathOf(a).length);
  if (!reader) return 'no GET of its path or above shows what it changes';
  const reading = { ...subject, operation: reader };
  const read = async (): Promise<ApiResponse> => (await send(reading, sufficient(reading))).response;
  const [first, second] = [await read(), await read()];
  if (first.status >= 300) return `${reader.name} shows nothing`;
  if (first.text !== second.text) return `${reader.name} changes by itself`;
  return { name: reader.name, hasChanged: async () => (await read()).text !== second.text };
}

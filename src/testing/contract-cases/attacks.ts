import { setTimeout as wait } from 'node:timers/promises';
import { isObject } from '../../core/objects';
import type { LocatedOperation } from '../../openapi/document';
import { bearer } from './credentials';
import type { TokenTransport } from './credentials';
import { caseOf, send, tokenWith } from './operation';
import type { CaseContext, ContractCase } from './operation';
import type { CaseClass } from './options';
import { assertNoMismatch, mediaTypeOf } from './responses';
import type { ApiRequest, ApiResponse } from './responses';
import type { Exchange } from './target';
import {
  eachOf,
  keyOf,
  findForeignObjects,
  findOverwritten,
  findRepeated,
  findTenants,
  membersMarked,
  sufficient,
} from './objects';
import type { AttackedApi, Finding } from './objects';
import { misplacedTokens, scopeForms, VARIANTS } from './variants';

/** An attack on one operation: its class, a sentence for its case, and what it finds. */
type AttackClass = readonly [
  what: CaseClass,
  sentence: string,
  find: (context: CaseContext, api: AttackedApi) => Promise<readonly Finding[]>,
  /** Default: to every operation. */
  applies?: (operation: LocatedOperation) => boolean,
];

const MAX_REDIRECTS = 2;

const CLASSES: readonly AttackClass[] = [
  ...Object.entries(VARIANTS).map(([what, { name, variants }]): AttackClass => [
    what as CaseClass,
    `stays closed ${name}`,
    async (context, api) => {
      const { operation, isFull } = context;
      const { target } = context.prepare();
      const subject = {
        ...{ document: api.document, operation, target, publicPath: api.publicPath, isFull },
        methods: api.methodsOf(operation.path),
      };
      return eachOf(variants(subject), async (variant) => {
        return (
          await eachOf(await weakCredentials(context, api), ([who, transport]) =>
            openWith(context, api, `${variant.name}, ${who}`, transport, variant.change),
          )
        ).find(Boolean);
      });
    },
  ]),
  [
    'transport',
    'takes a token from the Authorization header only',
    async (context, api) => {
      if (!(await isClosedTo(context, api, NOBODY, {}))) return [];
      return eachOf(misplacedTokens(api.document, context.isFull), ([, place, put]) => {
        const { headers = {} } = sufficient(context);
        const token = String(headers['authorization']).replace('Bearer ', '');
        return openWith(context, api, `a token in ${place}`, put(token));
      });
    },
  ],
  [
    'form',
    'takes no scope in another form',
    async (context, api) => {
      const [scopes = []] = context.operation.security;
      if (scopes.length === 0 || !(await isClosedTo(context, api, WITHOUT_SCOPES, tokenWith(context)))) return [];
      const forms = scopeForms(scopes);
      return eachOf(context.isFull ? forms : forms.slice(0, 4), ([form, token]) =>
        openWith(context, api, `${form} instead of a scope`, bearer(context.settings.issuer.token(token))),
      );
    },
  ],
  ['state', 'stays closed after it was open to another token', findRemembered],
  ['effect', 'changes nothing when it refuses', findSideEffects],
  ['leak', 'tells a caller who may not see it nothing', findLeaks],
  ['state', 'repeats no response to another client', findRepeated, (one) => keyOf(one) !== undefined],
  ['header', 'shows the same whatever tenant a header names', findTenants, ({ method }) => method === 'GET'],
  ['object', 'shows and changes only what belongs to the client', findForeignObjects],
  ['property', 'leaves readOnly members as they are', findOverwritten],
];

/** Lists the cases of attacks on one operation, one for each class. */
export function attackCases(context: CaseContext, api: AttackedApi): readonly ContractCase[] {
  if (context.operation.access !== 'token') return [];
  const classes = CLASSES.filter(([, , , applies]) => applies?.(context.operation) ?? true);
  return classes.map(([what, sentence, find]) =>
    caseOf(context, what, sentence, async (name) => {
      const found = (await find(context, api)).filter((one) => one !== undefined);
      const more = found.length > 1 ? ` (and ${found.length - 1} more)` : '';
      const [first = ''] = found;
      const { text, exchange } = typeof first === 'string' ? { text: first, exchange: undefined } : first;
      const mismatch = { what: 'found', got: `${text}${more}`, expected: 'nothing' };
      assertNoMismatch(name, found.length === 0 ? [] : [mismatch], exchange);
    }),
  );
}

/** Whether the plain request of an operation is refused, by who sends it: what is open anyway is another case's finding. */
const closedTo = new WeakMap<CaseContext, Map<string, Promise<boolean>>>();

/** Callers who may not: without a token, and with a good one that has no scope. */
async function weakCredentials(
  context: CaseContext,
  api: AttackedApi,
): Promise<readonly (readonly [who: string, transport: TokenTransport])[]> {
  const callers = [
    [NOBODY, {}],
    ...(needsScopes(context) ? [[WITHOUT_SCOPES, tokenWith(context)] as const] : []),
  ] as const;
  const isRefused = await eachOf(callers, ([who, transport]) => isClosedTo(context, api, who, transport));
  return callers.filter((_caller, index) => isRefused[index]);
}

const NOBODY = 'without a token';
const WITHOUT_SCOPES = 'with a token without scopes';

function needsScopes({ operation }: CaseContext): boolean {
  return operation.security.every((scopes) => scopes.length > 0);
}

function isClosedTo(context: CaseContext, api: AttackedApi, who: string, transport: TokenTransport): Promise<boolean> {
  const known = closedTo.get(context) ?? new Map<string, Promise<boolean>>();
  closedTo.set(context, known);
  const isClosed = known.get(who) ?? openWith(context, api, who, transport).then((found) => found === undefined);
  known.set(who, isClosed);
  return isClosed;
}

/** Sends a request that must stay closed; says what it got when it was open. */
async function openWith(
  context: CaseContext,
  api: AttackedApi,
  what: string,
  transport: TokenTransport,
  change?: (request: ApiRequest) => ApiRequest,
): Promise<Finding> {
  if (context.isLimited()) {
    context.wasLimited = true;
    return undefined;
  }
  let exchange: Exchange;
  try {
    exchange = await send(context, transport, change);
    for (let count = 0; count < MAX_REDIRECTS; count++) {
      const { location } = exchange.response.headers;
      const { status } = exchange.response;
      if (status < 300 || status > 399 || !location?.startsWith('/')) break;
      const { request } = exchange;
      exchange = await context.call({ ...request, target: location, method: status === 308 ? request.method : 'GET' });
    }
  } catch {
    // A server may end the connection of a request that it cannot read.
    return undefined;
  }
  return (await isOpen(context, api, exchange))
    ? { text: `${what}: ${exchange.response.status}`, exchange }
    : undefined;
}

/** Whether an operation has responded to a request: by its handler where that can be seen, else by what it sent. */
async function isOpen(
  context: CaseContext,
  api: AttackedApi,
  { request, response, trace }: Exchange,
): Promise<boolean> {
  if (response.status < 300 || response.status === 304) {
    const handler = api.handlerOf(context);
    if (trace.ran.size > 0)
      return handler === undefined ? !(await isUsual(context, request, response)) : trace.ran.has(handler);
    const isLikely = context.good ? resembles(response, context.good) : request.method === context.operation.method;
    return isLikely && !(await isUsual(context, request, response));
  }
  return false;
}

/** Whether a response has the form of one to a good token. */
function resembles(response: ApiResponse, good: ApiResponse): boolean {
  if (response.status === 101 || response.status === 304) return true;
  const [type, other] = [response, good].map(({ headers }) => mediaTypeOf(headers['content-type']));
  if (type !== other) return false;
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

/** Refusals after a success: what a cache or a memo of the gate would get wrong. */
async function findRemembered(context: CaseContext, api: AttackedApi): Promise<readonly Finding[]> {
  const { operation, settings } = context;
  if (operation.method !== 'GET') return [];
  const clientId = 'contract-cases-known';
  const known = sufficient(context, clientId);
  const { response: good } = await send(context, known);
  if (good.status >= 300) return [];
  context.good ??= good;
  const token = String(known.headers?.['authorization']).replace('Bearer ', '');
  const [head = '', payload = '', signature = ''] = token.split('.');
  const changed = signature.startsWith('A') ? `B${signature.slice(1)}` : `A${signature.slice(1)}`;
  const etag = good.headers.etag;
  const found = [
    ...(await eachOf(await weakCredentials(context, api), ([who, transport]) =>
      openWith(context, api, `${who}, after a success`, transport),
    )),
    await openWith(context, api, 'a known token with another signature', bearer(`${head}.${payload}.${changed}`)),
    ...((await weakCredentials(context, api)).some(([who]) => who === WITHOUT_SCOPES)
      ? [
          await openWith(
            context,
            api,
            'another token of the same client, without scopes',
            bearer(settings.issuer.token({ clientId })),
          ),
        ]
      : []),
    ...(etag === undefined
      ? []
      : [await openWith(context, api, 'If-None-Match without a token', { headers: { 'if-none-match': etag } })]),
  ];
  if (!context.rules.isStrict() || settings.generations === false || !context.isFull) return found;
  settings.issuer.token({ clientId, superseded: true });
  const deadlineMs = performance.now() + settings.propagationMs;
  for (;;) {
    const open = await openWith(context, api, 'a known token that was superseded', known);
    if (open === undefined || performance.now() >= deadlineMs) return [...found, open];
    await wait(50);
  }
}

/** A read before and after a refused write must be equal. */
async function findSideEffects(context: CaseContext, api: AttackedApi): Promise<readonly Finding[]> {
  const { method, path } = context.operation;
  const reader = api.operationOf('GET', path);
  if (['GET', 'HEAD', 'OPTIONS'].includes(method) || reader?.operation.access !== 'token') return [];
  const read = async (): Promise<ApiResponse> => (await send(reader, sufficient(reader))).response;
  const [first, second] = [await read(), await read()];
  // What changes by itself says nothing.
  if (first.status >= 300 || first.text !== second.text) return [];
  return eachOf(await weakCredentials(context, api), async ([who, transport]) => {
    await send(context, transport);
    const after = await read();
    return after.text === second.text ? undefined : `${who}, GET ${path} differs afterwards`;
  });
}

/** Shorter texts are in many responses. */
const TELLING_LENGTH = 8;

/** Refusals that show what only a good token may see, and responses that anybody may store or read. */
async function findLeaks(context: CaseContext, api: AttackedApi): Promise<readonly Finding[]> {
  const { operation, good } = context;
  const found: Finding[] = [];
  const request = context.prepare();
  const sent = `${request.target} ${request.body ?? ''}`;
  const secrets = textsIn(good?.body).filter((text) => text.length >= TELLING_LENGTH && !sent.includes(text));
  for (const [who, transport] of await weakCredentials(context, api)) {
    const { response } = await send(context, transport);
    const told = secrets.find((text) => response.text.includes(text));
    // Words of the document, such as the name of the issuer, are no secret.
    const isPublic = told !== undefined && JSON.stringify(api.document).includes(told);
    if (response.status >= 400 && told !== undefined && !isPublic) found.push(`${who}, the refusal contains "${told}"`);
  }
  if (operation.method !== 'GET' || !good) return found;
  if (/(?:^|[\s,])public(?:$|[\s,])/.test(good.headers['cache-control'] ?? '')) {
    found.push(`a response with Cache-Control: ${good.headers['cache-control']} to one caller is stored for all`);
  }
  const origin = 'https://elsewhere.example';
  const { headers } = sufficient(context);
  const { response } = await send(context, { headers: { ...headers, origin } });
  const { 'access-control-allow-origin': allowed, 'access-control-allow-credentials': credentials } = response.headers;
  if (allowed === origin && credentials === 'true') found.push(`any origin may read it with credentials`);
  const hidden = membersMarked('writeOnly', context, api, good.status);
  const shown = [good.body].flat().flatMap((one) => (isObject(one) ? Object.keys(one) : []));
  const leaked = hidden.find((name) => shown.includes(name));
  if (leaked !== undefined) found.push(`the response has "${leaked}", which is writeOnly`);
  return found;
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}

import { attempt, isObject } from '../../core/objects';
import { isHeldBy } from './credentials';
import type { TokenTransport } from './credentials';
import { tokenWith } from './operation';
import type { CaseContext } from './operation';
import { eachOf, NOT_THERE, secretsOf, sufficient, watchEffect, weakCredentials } from './probe';
import type { AttackedApi, Finding } from './probe';
import type { ApiRequest } from './responses';
import type { Exchange, Target } from './target';
import type { Variant, VariantClass } from './variants';

/** Requests that turn a connection into another protocol (RFC 6455 section 4.1, RFC 7540 section 3.2). */
const UPGRADES: readonly (readonly [quick: boolean, headers: Readonly<Record<string, string>>])[] = [
  [
    true,
    {
      ...{ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
      'sec-websocket-key': Buffer.from('contract-cases--').toString('base64'),
    },
  ],
  [false, { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABkAAQAAP__' }],
];

/** Paths where sockets usually are. */
const SOCKETS = [
  '/ws',
  '/websocket',
  '/socket',
  '/socket.io/?EIO=4&transport=websocket',
  '/graphql',
  '/live',
  '/stream',
];

/** Requests that carry more than they seem to. */
export const CARRIERS: VariantClass = {
  name: 'to upgrades, lists and a method in the body',
  variants({ operation: { method }, isFull }) {
    const upgrades = UPGRADES.filter(([quick]) => method === 'GET' && (quick || isFull)).map(
      ([, headers]): Variant => ({
        name: `with Upgrade: ${headers['upgrade'] ?? ''}`,
        change: (request) => ({ ...request, headers: { ...request.headers, ...headers } }),
      }),
    );
    const bodies: readonly (readonly [name: string, type: string, body: (request: ApiRequest) => string])[] = [
      [`by POST with _method=${method} in a form`, 'application/x-www-form-urlencoded', () => `_method=${method}`],
      [
        `by POST with _method=${method} in its body`,
        'application/json',
        ({ body }) => JSON.stringify({ ...objectIn(body), _method: method }),
      ],
    ];
    const overridden = bodies.map(([name, type, body]): Variant => ({
      name,
      change: (request) => ({
        ...request,
        method: 'POST',
        headers: { ...request.headers, 'content-type': type },
        body: body(request),
      }),
    }));
    const twice: Variant = {
      name: 'with a list of two bodies',
      change: (request) => ({ ...request, body: `[${request.body ?? '{}'},${request.body ?? '{}'}]` }),
    };
    if (method === 'GET') return upgrades;
    return method === 'POST' ? [twice] : overridden;
  },
};

const PATH = /^(?:path|url|uri|href|target|endpoint|relative_?url)$/i;
const METHOD = /^(?:_?method|http_?method|verb)$/i;

/** How batch endpoints that no document describes take a request. */
const ENVELOPES: readonly ((item: object) => unknown)[] = [
  (item) => [item],
  (item) => ({ requests: [item] }),
  (item) => ({ operations: [item] }),
  (item) => ({ batch: [item] }),
];

/** A request that carries another one, and who sends it. */
interface Carrier {
  readonly name: string;
  readonly transport: TokenTransport;
  readonly carry: (inner: ApiRequest) => readonly ApiRequest[];
}

const NOWHERE: ApiRequest = { method: 'GET', target: '/contract-cases/nowhere', headers: {}, body: undefined };

/** An operation must not be reached by a request inside another one, whose caller may not call it. */
export async function findCarried(context: CaseContext, api: AttackedApi): Promise<readonly Finding[]> {
  if (context.isLimited()) return [];
  const carriers = [...documentedCarriers(context, api), ...(await hiddenCarriers(context, api))];
  if (carriers.length === 0) return [];
  const { method } = context.operation;
  const hasChanged = method === 'GET' ? undefined : await watchEffect(context, api);
  const secrets = method === 'GET' ? await secretsOf(context, api) : [];
  const found = await eachOf(carriers, async ({ name, transport, carry }) => {
    const send = (request: ApiRequest): Promise<Exchange | undefined> =>
      context.call({ ...request, headers: { ...request.headers, ...transport.headers } }).catch(() => undefined);
    // What a batch shows anyway is not from the operation.
    const usual = (await eachOf(carry(NOWHERE), send)).map((one) => one?.response.text ?? '').join();
    const told = secrets.filter((secret) => !usual.includes(secret));
    return eachOf(carry(context.prepare()), async (request): Promise<Finding> => {
      const exchange = await send(request);
      const isShown = told.some((secret) => exchange?.response.text.includes(secret));
      if (!exchange || !(isShown || (await hasChanged?.()))) return undefined;
      return { text: `inside ${name}: ${exchange.response.status}`, exchange };
    });
  });
  return found.flat();
}

/** Operations whose body is a request, or has a list of them, with tokens that suffice for them only. */
function documentedCarriers({ operation: { security }, grants }: CaseContext, api: AttackedApi): readonly Carrier[] {
  return api.contexts.flatMap((carrier) => {
    const { method, access } = carrier.operation;
    const prepared = method === 'POST' ? attempt(() => carrier.prepare()) : undefined;
    const body = prepared && attempt((): unknown => JSON.parse(prepared.body ?? ''));
    const scopes = carrier.operation.security[0] ?? [];
    if (!prepared || !holdsRequest(body) || isHeldBy(scopes, security, grants)) return [];
    return {
      name: carrier.name,
      transport: access === 'token' ? sufficient(carrier) : {},
      carry: (inner) =>
        itemsOf(inner, api).map((item) => ({ ...prepared, body: JSON.stringify(withRequest(body, item)) })),
    };
  });
}

function holdsRequest(value: unknown): boolean {
  return JSON.stringify(withRequest(value, { path: NOWHERE.target, method: '' })) !== JSON.stringify(value);
}

/** Replaces the requests in a body: objects that have both a path and a method. */
function withRequest(value: unknown, item: Item): unknown {
  if (Array.isArray(value)) return value.map((one) => withRequest(one, item));
  if (!isObject(value)) return value;
  const names = Object.keys(value);
  if (!names.some((name) => PATH.test(name)) || !names.some((name) => METHOD.test(name))) {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withRequest(one, item)]));
  }
  const { path, method, ...others } = item;
  const replaced = Object.entries(value).map(([name, one]) => {
    return [name, PATH.test(name) ? path : METHOD.test(name) ? method : one];
  });
  return { ...Object.fromEntries(replaced), ...others };
}

interface Item {
  readonly path: string;
  readonly method: string;
  readonly [other: string]: unknown;
}

/** A request as an item of a batch: with its path, also below the base path, and with its method in `_method`. */
function itemsOf({ target, method, body }: ApiRequest, { basePath }: AttackedApi): readonly Item[] {
  const content = body === undefined ? {} : { body: objectIn(body) };
  const below = basePath !== '' && target.startsWith(basePath) ? [target.slice(basePath.length)] : [];
  return [
    ...[target, ...below].map((path) => ({ path, method, ...content })),
    ...(method === 'GET' ? [] : [{ path: target, method: 'GET', _method: method, ...content }]),
  ];
}

const hidden = new WeakMap<AttackedApi, Promise<readonly string[]>>();

/** Batch endpoints that the document lacks: for everybody who may not call the operation. */
async function hiddenCarriers(context: CaseContext, api: AttackedApi): Promise<readonly Carrier[]> {
  const paths = hidden.get(api) ?? findHidden(context, api);
  hidden.set(api, paths);
  const callers = (await paths).length === 0 ? [] : await weakCredentials(context, api);
  return (await paths).flatMap((path) =>
    callers.map(([who, transport]) => ({
      name: `POST ${path}, ${who}`,
      transport,
      carry: (inner) => batches(path, inner, api),
    })),
  );
}

async function findHidden(context: CaseContext, api: AttackedApi): Promise<readonly string[]> {
  const paths = prefixesOf(api).flatMap((prefix) => [`${prefix}/batch`, `${prefix}/$batch`]);
  const unknown = paths.filter((path) => !api.methodsOf(path).includes('POST'));
  const found = await eachOf(unknown, async (path) => {
    const [request = NOWHERE] = batches(path, NOWHERE, api);
    const { headers = {} } = tokenWith(context);
    const sent = await context.call({ ...request, headers: { ...request.headers, ...headers } }).catch(() => undefined);
    return sent && ![401, 403, ...NOT_THERE].includes(sent.response.status) ? [path] : [];
  });
  return found.flat();
}

function batches(target: string, inner: ApiRequest, api: AttackedApi): readonly ApiRequest[] {
  return itemsOf(inner, api).flatMap(({ path, ...others }) =>
    ENVELOPES.map((wrap) => ({
      ...{ method: 'POST', target, headers: { 'content-type': 'application/json' } },
      body: JSON.stringify(wrap({ id: '1', path, url: path, relative_url: path, ...others })),
    })),
  );
}

function objectIn(body: string | undefined): object {
  const value = attempt((): unknown => JSON.parse(body ?? ''));
  return isObject(value) ? value : {};
}

/** What comes before the paths of resources. */
function prefixesOf({ basePath, contexts }: AttackedApi): readonly string[] {
  const versions = contexts.map(({ operation }) => /^(?:\/api)?(?:\/v\d+)?(?=\/)/.exec(operation.path)?.[0] ?? '');
  return [...new Set(['', basePath, ...versions])];
}

/** Paths that upgrade to WebSocket for anybody, and that the document lacks; those may ask for a token later. */
export async function findSockets(call: Target['call'], api: AttackedApi): Promise<readonly string[]> {
  const [, headers = {}] = UPGRADES[0] ?? [];
  const isSocket = async (target: string): Promise<boolean> => {
    const sent = await call({ ...NOWHERE, target, headers }).catch(() => undefined);
    return sent?.response.status === 101;
  };
  if (await isSocket(NOWHERE.target)) return ['any path'];
  const paths = prefixesOf(api).flatMap((prefix) => SOCKETS.map((path) => prefix + path));
  const unknown = paths.filter((path) => api.methodsOf(path).length === 0);
  return (await eachOf(unknown, async (path) => ((await isSocket(path)) ? [path] : []))).flat();
}

import { createPublicKey, verify as verifySignature } from 'node:crypto';
import type { JsonWebKey } from 'node:crypto';
import type { TestIssuer } from '../../../../src/testing';

/** A request, whatever framework has read it. */
export interface Call {
  readonly method: string;
  /** As it was sent: path and query. */
  readonly url: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: unknown;
  /** Parameters of the path. */
  readonly params: Readonly<Record<string, string>>;
}

/** A response. A text is sent as it is, anything else as JSON. */
export interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

export type Step = (call: Call) => Reply | undefined | Promise<Reply | undefined>;

/** One route: its steps run in their order, until one replies. */
export interface Route {
  readonly method: string;
  /** As Express has it: `/v1/parcels/:id`. */
  readonly path: string;
  readonly steps: readonly Step[];
}

export interface Claims {
  readonly iss?: unknown;
  readonly aud?: unknown;
  readonly exp?: unknown;
  readonly nbf?: unknown;
  readonly scope?: unknown;
  readonly client_id?: unknown;
  readonly [name: string]: unknown;
}

interface Parcel {
  readonly id: string;
  readonly owner: string;
  to: string;
  weight: number;
  checked: boolean;
  deleted?: boolean;
}

/** What a server is made of. */
export interface Plan {
  readonly first: Step;
  readonly routes: readonly Route[];
}

/** What the handlers work with. */
export interface Store {
  readonly parcels: Map<string, Parcel>;
  readonly labels: Map<string, { readonly id: string; readonly owner: string; readonly parcel: string }>;
  last: number;
}

/** The parts of the server; a mistake replaces some of them. */
export interface Parts {
  /** Runs before the routes. */
  readonly first: (call: Call, server: Server) => Reply | undefined | Promise<Reply | undefined>;
  readonly tokenOf: (call: Call) => string | undefined;
  readonly verify: (token: string, issuer: TestIssuer, call: Call) => Claims | undefined | Promise<Claims | undefined>;
  readonly allows: (claims: Claims, scope: string, call: Call) => boolean;
  /** Whether a route needs no token. */
  readonly isOpen: (call: Call, route: string) => boolean;
  readonly refuse: (status: 401 | 403, scope: string, call: Call, server: Server) => Reply;
  readonly handlers: Readonly<Record<string, (call: Call, server: Server, client: string) => Reply>>;
}

export interface Server {
  readonly issuer: TestIssuer;
  readonly store: Store;
  readonly parts: Parts;
}

/** A mistake: what replaces parts of a right server. */
export type Mistake = Partial<Omit<Parts, 'handlers'>> & { readonly handlers?: Partial<Parts['handlers']> };

export const decode = (part = ''): unknown => JSON.parse(Buffer.from(part, 'base64url').toString());

export function isSigned(token: string, jwk: JsonWebKey | undefined): boolean {
  const [head, payload, signature = ''] = token.split('.');
  if (!jwk) return false;
  const key = { key: createPublicKey({ key: jwk, format: 'jwk' }), dsaEncoding: 'ieee-p1363' } as const;
  return verifySignature('sha256', Buffer.from(`${head}.${payload}`), key, Buffer.from(signature, 'base64url'));
}

export function keyOf(issuer: TestIssuer, kid: unknown): JsonWebKey | undefined {
  const { keys } = (issuer.options as unknown as { keys: { keys: readonly (JsonWebKey & { kid: string })[] } }).keys;
  return keys.find((one) => one.kid === kid);
}

export const audienceOf = ({ aud }: Claims): readonly unknown[] => (Array.isArray(aud) ? aud : [aud]);
export const isTimely = ({ exp, nbf = 0 }: Claims): boolean =>
  typeof exp === 'number' && exp > Date.now() / 1000 && typeof nbf === 'number' && nbf <= Date.now() / 1000;

export function isOf(issuer: TestIssuer, claims: Claims): boolean {
  return claims.iss === issuer.issuer && audienceOf(claims).includes(issuer.audience);
}

/** What a gate by hand does. */
export function verifyRight(token: string, issuer: TestIssuer): Claims | undefined {
  try {
    const [head, payload] = token.split('.').map((part, at) => (at < 2 ? decode(part) : part)) as [Claims, Claims];
    if (head['alg'] !== 'ES256' || !isSigned(token, keyOf(issuer, head['kid']))) return undefined;
    return isOf(issuer, payload) && isTimely(payload) ? payload : undefined;
  } catch {
    return undefined;
  }
}

export const scopesOf = ({ scope }: Claims): readonly string[] => (typeof scope === 'string' ? scope.split(' ') : []);
export const bearerOf = ({ headers }: Call): string | undefined =>
  /^Bearer ([^ ]+)$/i.exec(headers['authorization'] ?? '')?.[1];

const shown = ({ id, to, weight, checked }: Parcel): object => ({
  id,
  to,
  weight,
  checked,
  carrier: 'Northwind Express',
});
const ownOf = (server: Server, id: unknown, client: string): Parcel | undefined => {
  const found = server.store.parcels.get(String(id));
  return found?.owner === client && !found.deleted ? found : undefined;
};
export const NOT_FOUND: Reply = { status: 404, body: { error: 'nothing here' } };
const CARDS = ['card', 'invoice'];

/** What a body must be; `undefined`: it is right. */
export function wrongIn(body: unknown, isPart = false): Reply | undefined {
  const { to, weight, payment } = (body ?? {}) as { to?: unknown; weight?: unknown; payment?: { kind?: unknown } };
  const isRight =
    ((isPart && to === undefined) || (typeof to === 'string' && /^[A-Z]{2}-\d{4}$/.test(to))) &&
    ((isPart && weight === undefined) || (Number.isInteger(weight) && (weight as number) >= 10)) &&
    (isPart || CARDS.includes(String(payment?.kind)));
  return isRight ? undefined : { status: 422, body: { error: 'not a parcel' } };
}

export const HANDLERS: Parts['handlers'] = {
  status: () => ({ status: 200, body: { up: true } }),
  list: ({ query }, { store }, client) => {
    const all = [...store.parcels.values()].filter((one) => one.owner === client && !one.deleted);
    const from = all.findIndex(({ id }) => id === query.get('cursor')) + 1;
    const page = all.slice(from, from + Number(query.get('limit') ?? 100));
    const next = page.length > 0 && page.at(-1) !== all.at(-1) ? page.at(-1)?.id : null;
    return {
      status: 200,
      body: { parcels: page.map(shown), total: all.length, next_cursor: next, depot: 'Hamburg-West' },
    };
  },
  make: ({ body }, { store }, client) => {
    const wrong = wrongIn(body);
    if (wrong) return wrong;
    const { to, weight } = body as { to: string; weight: number };
    const id = `p-${1000 + ++store.last}`;
    const parcel: Parcel = { id, owner: client, to, weight, checked: false };
    store.parcels.set(id, parcel);
    return { status: 201, headers: { location: `/v1/parcels/${id}` }, body: shown(parcel) };
  },
  get: ({ params }, server, client) => {
    const found = ownOf(server, params['id'], client);
    return found ? { status: 200, body: shown(found) } : NOT_FOUND;
  },
  change: ({ params, body }, server, client) => {
    const found = ownOf(server, params['id'], client);
    if (!found) return NOT_FOUND;
    const wrong = wrongIn(body, true);
    if (wrong) return wrong;
    const { to, weight } = body as { to?: string; weight?: number };
    Object.assign(found, { to: to ?? found.to, weight: weight ?? found.weight });
    return { status: 200, body: shown(found) };
  },
  remove: ({ params }, server, client) => {
    const found = ownOf(server, params['id'], client);
    if (!found) return NOT_FOUND;
    found.deleted = true;
    return { status: 204 };
  },
  merge: ({ params, body }, server, client) => {
    const [one, other] = [params['id'], (body as { with?: unknown } | undefined)?.with].map((id) =>
      ownOf(server, id, client),
    );
    return one && other ? { status: 200, body: shown(one) } : NOT_FOUND;
  },
  label: ({ params }, server, client) => {
    const found = ownOf(server, params['id'], client);
    if (!found) return NOT_FOUND;
    const id = `l-${1000 + ++server.store.last}`;
    server.store.labels.set(id, { id, owner: client, parcel: found.id });
    return { status: 201, body: { id, parcel: found.id } };
  },
  labels: ({ params }, server, client) => {
    const { id, label } = params;
    const found = server.store.labels.get(String(label));
    if (!ownOf(server, id, client) || found?.owner !== client || found.parcel !== id) return NOT_FOUND;
    return { status: 200, body: found };
  },
  drop: ({ query }, server, client) => {
    const ids = query.getAll('ids').flatMap((one) => one.split(','));
    const found = ids.map((id) => ownOf(server, id, client));
    if (found.length === 0 || found.some((one) => !one)) return NOT_FOUND;
    for (const one of found) Object.assign(one as object, { deleted: true });
    return { status: 204 };
  },
  rates: () => ({ status: 200, body: { rates: [{ zone: 'DE-North-4711', cents: 499 }] } }),
  ticket: () => ({ status: 302, headers: { location: '/files/ticket-8412-9930.pdf?signature=b7c1d9e0' } }),
};

/** Operations with the scope that each needs. */
const ROUTES: readonly (readonly [name: string, method: string, path: string, scope: string])[] = [
  ['list', 'GET', '/v1/parcels', 'parcels.read'],
  ['make', 'POST', '/v1/parcels', 'parcels.write'],
  ['drop', 'DELETE', '/v1/parcels', 'parcels.write'],
  ['get', 'GET', '/v1/parcels/:id', 'parcels.read'],
  ['change', 'PATCH', '/v1/parcels/:id', 'parcels.write'],
  ['remove', 'DELETE', '/v1/parcels/:id', 'parcels.write'],
  ['merge', 'POST', '/v1/parcels/:id/merge', 'parcels.write'],
  ['label', 'POST', '/v1/parcels/:id/labels', 'parcels.write'],
  ['labels', 'GET', '/v1/parcels/:id/labels/:label', 'parcels.read'],
  ['rates', 'GET', '/v1/rates', 'rates'],
  ['ticket', 'GET', '/v1/ticket', 'parcels.read'],
];

/** The routes of a server with a mistake, or of a right one. */
export function routesOf(issuer: TestIssuer, refuse: Parts['refuse'], mistake: Mistake = {}): Plan {
  const parts: Parts = {
    first: () => undefined,
    tokenOf: bearerOf,
    verify: verifyRight,
    allows: (claims, scope) => scopesOf(claims).includes(scope),
    isOpen: () => false,
    refuse,
    ...mistake,
    handlers: { ...HANDLERS, ...mistake.handlers } as Parts['handlers'],
  };
  const server: Server = { issuer, store: { parcels: new Map(), labels: new Map(), last: 0 }, parts };
  const run = (name: string, call: Call, client: string): Reply =>
    parts.handlers[name]?.(call, server, client) ?? NOT_FOUND;
  const guarded = ROUTES.map(([name, method, path, scope]): Route => {
    const serve: Step = async (call) => {
      if (parts.isOpen(call, name)) return run(name, call, 'anybody');
      const token = parts.tokenOf(call);
      const claims = token === undefined ? undefined : await parts.verify(token, issuer, call);
      if (!claims) return parts.refuse(401, scope, call, server);
      if (!parts.allows(claims, scope, call)) return parts.refuse(403, scope, call, server);
      return run(name, call, String(claims.client_id));
    };
    return { method, path, steps: [serve] };
  });
  const open: Route = { method: 'GET', path: '/status', steps: [(call) => run('status', call, 'anybody')] };
  return { first: (call: Call) => parts.first(call, server), routes: [open, ...guarded] };
}

const json = (schema: object): object => ({ 'application/json': { schema } });
const refused = { description: 'Refused' };
const body = (required: readonly string[], more: object = {}): object => ({
  type: 'object',
  required,
  properties: {
    to: { type: 'string', pattern: '^[A-Z]{2}-\\d{4}$' },
    weight: { type: 'integer', minimum: 10 },
    checked: { type: 'boolean', readOnly: true },
    secret: { type: 'string', writeOnly: true },
    ...more,
  },
});
const payment = { type: 'object', required: ['kind'], properties: { kind: { enum: CARDS } } };
const parcel = json(body([], { id: { type: 'string' } }));
const own = (name: string): object => ({
  name,
  in: 'path',
  required: true,
  schema: { type: 'string' },
  'x-owner': 'client',
});
const read = [{ oauth: ['parcels.read'] }];
const write = [{ oauth: ['parcels.write'] }];
const ids = { type: 'array', minItems: 1, items: { type: 'string', 'x-owner': 'client' } };
const given = (schema: object): object => ({ required: true, content: json(schema) });

/** What the server does, as OpenAPI says it. */
export const DOCUMENT = {
  openapi: '3.1.0',
  info: { title: 'Parcels', version: '1' },
  paths: {
    '/status': { get: { security: [], responses: { 200: { description: 'Up' } } } },
    '/v1/parcels': {
      get: {
        security: read,
        parameters: [
          { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1 } },
          { name: 'cursor', in: 'query', schema: { type: 'string' } },
          { name: 'sort', in: 'query', schema: { enum: ['newest', 'oldest'] } },
        ],
        responses: { 200: { description: 'Parcels' }, '4XX': refused },
      },
      post: {
        security: write,
        requestBody: given(body(['to', 'weight', 'payment'], { payment })),
        responses: { 201: { description: 'The parcel', content: parcel }, '4XX': refused },
      },
      delete: {
        security: write,
        parameters: [{ name: 'ids', in: 'query', required: true, schema: ids }],
        responses: { 204: { description: 'Removed' }, '4XX': refused },
      },
    },
    '/v1/parcels/{id}': {
      parameters: [own('id')],
      get: { security: read, responses: { 200: { description: 'The parcel', content: parcel }, '4XX': refused } },
      patch: {
        security: write,
        requestBody: given(body([])),
        responses: { 200: { description: 'The parcel', content: parcel }, '4XX': refused },
      },
      delete: { security: write, responses: { 204: { description: 'Removed' }, '4XX': refused } },
    },
    '/v1/parcels/{id}/merge': {
      parameters: [own('id')],
      post: {
        security: write,
        requestBody: given({
          type: 'object',
          required: ['with'],
          properties: { with: { type: 'string', 'x-owner': 'client' } },
        }),
        responses: { 200: { description: 'One parcel' }, '4XX': refused },
      },
    },
    '/v1/parcels/{id}/labels': {
      parameters: [own('id')],
      post: { security: write, responses: { 201: { description: 'A label' }, '4XX': refused } },
    },
    '/v1/parcels/{id}/labels/{label}': {
      parameters: [own('id'), own('label')],
      get: { security: read, responses: { 200: { description: 'The label' }, '4XX': refused } },
    },
    '/v1/rates': {
      get: { security: [{ oauth: ['rates'] }], responses: { 200: { description: 'Rates' }, '4XX': refused } },
    },
    '/v1/ticket': { get: { security: read, responses: { 302: { description: 'A signed link' }, '4XX': refused } } },
  },
  components: {
    securitySchemes: {
      oauth: {
        type: 'oauth2',
        flows: {
          clientCredentials: {
            tokenUrl: '/t',
            scopes: { 'parcels.read': '', 'parcels.write': '', rates: '', 'rates.export': '' },
          },
        },
      },
    },
  },
};

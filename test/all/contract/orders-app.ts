import express from 'express';
import type { Express, RequestHandler } from 'express';
import { authenticate, requireScope } from '../../../src/gate';
import type { Auth } from '../../../src/gate';
import type { TestIssuer } from '../../../src/testing';

/** Bugs of real APIs, one at a time, in an app that is correct otherwise. */
export interface Kit {
  readonly app: Express;
  readonly issuer: TestIssuer;
  readonly gate: RequestHandler;
  readonly read: RequestHandler;
  readonly write: RequestHandler;
  readonly silent: { info(): void; warn(): void; error(): void };
}

/** Replaces parts of the correct app. */
export interface Bug {
  /** Runs before everything else. */
  readonly first?: (kit: Kit) => RequestHandler;
  /** Instead of the gate. */
  readonly gate?: (kit: Kit) => RequestHandler;
  readonly list?: (kit: Kit) => readonly RequestHandler[];
  readonly place?: (kit: Kit) => readonly RequestHandler[];
  readonly get?: (kit: Kit) => readonly RequestHandler[];
  readonly remove?: (kit: Kit) => readonly RequestHandler[];
  /** Adds what comes before the gate, or after it. */
  readonly before?: (kit: Kit) => void;
  readonly after?: (kit: Kit) => void;
}

const silent = { info() {}, warn() {}, error() {} };
export const ORDER = { id: 'order-one', item: 'Margherita', quantity: 1, secretCost: undefined as unknown };

export const sendOrders: RequestHandler = (_req, res) => void res.json({ orders: [ORDER], total: 'forty-two' });
export const sendOrder: RequestHandler = (_req, res) => void res.json(ORDER);

/** An app whose orders belong to the client that has placed them. */
export function makeApp(issuer: TestIssuer, bug: Bug = {}): Express {
  const app = express();
  const gate = authenticate({ ...issuer.options, logger: silent }) as RequestHandler;
  const read = requireScope('orders:read') as RequestHandler;
  const write = requireScope('orders:write') as RequestHandler;
  const kit: Kit = { app, issuer, gate, read, write, silent };
  const orders = new Map<string, { owner: string; id: string; item: unknown }>();
  let last = 0;
  const owner = (req: { auth?: Auth | undefined }): string => req.auth?.clientId ?? '';
  const place: RequestHandler = (req, res) => {
    const id = `placed-${++last}`;
    const order = { owner: owner(req), id, item: (req.body as { item?: unknown }).item };
    orders.set(id, order);
    res.status(201).json({ id, item: order.item });
  };
  const mine = (req: Parameters<RequestHandler>[0]) => {
    const found = orders.get(String(req.params['id']));
    if (req.params['id'] === 'order-one') return { owner: owner(req), id: 'order-one', item: 'Margherita' };
    return found?.owner === owner(req) ? found : undefined;
  };
  const get: RequestHandler = (req, res) => {
    const found = mine(req);
    if (!found) return void res.status(404).json({ title: 'Not found', status: 404 });
    res.json({ id: found.id, item: found.item });
  };
  const remove: RequestHandler = (req, res) => {
    const found = mine(req);
    if (!found) return void res.status(404).json({ title: 'Not found', status: 404 });
    orders.delete(found.id);
    res.sendStatus(204);
  };

  if (bug.first) app.use(bug.first(kit));
  app.get('/health', (_req, res) => void res.json({ status: 'ok' }));
  bug.before?.(kit);
  app.use('/v1', bug.gate?.(kit) ?? gate);
  app.get('/v1/orders', ...(bug.list?.(kit) ?? [read, sendOrders]));
  app.post('/v1/orders', express.json(), ...(bug.place?.(kit) ?? [write, place]));
  app.get('/v1/orders/:id', ...(bug.get?.(kit) ?? [read, get]));
  app.delete('/v1/orders/:id', ...(bug.remove?.(kit) ?? [write, remove]));
  bug.after?.(kit);
  return app;
}

/** Runs a guard or gate only where a condition holds: the shape of most of these bugs. */
export const unless =
  (condition: (req: Parameters<RequestHandler>[0]) => boolean, guard: RequestHandler): RequestHandler =>
  (req, res, next) => {
    if (!condition(req)) return void guard(req, res, next);
    req.auth = { clientId: 'nobody', scopes: ['orders:read', 'orders:write'], claims: {} } as unknown as Auth;
    next();
  };
/** The operation that most bugs are in. */
export const LIST = 'GET /v1/orders';

/** A bug with the operation that has it, and the sentence of the case that finds it. */
export type Row = readonly [operation: string, sentence: string, bug: Bug];

export function foundBy(operation: string, sentence: string, bugs: Readonly<Record<string, Bug>>): Record<string, Row> {
  return Object.fromEntries(Object.entries(bugs).map(([what, bug]) => [what, [operation, sentence, bug]]));
}

/** Neither gate nor guard where a condition holds. */
export function open(condition: (req: Parameters<RequestHandler>[0]) => boolean): Bug {
  return { gate: ({ gate }) => unless(condition, gate), list: ({ read }) => [unless(condition, read), sendOrders] };
}
const problem = { description: 'Refused', content: { 'application/problem+json': { schema: { type: 'object' } } } };
const order = {
  type: 'object',
  properties: {
    id: { type: 'string', readOnly: true },
    item: { type: 'string' },
    secretCost: { type: 'number', writeOnly: true },
  },
};
const json = (schema: object): object => ({ 'application/json': { schema } });
const id = {
  name: 'id',
  in: 'path',
  required: true,
  example: 'order-one',
  schema: { type: 'string' },
  'x-owner': 'client',
};

/** Its document. */
export const DOCUMENT = {
  openapi: '3.1.0',
  info: { title: 'Orders', version: '1.0.0' },
  paths: {
    '/health': { get: { security: [], responses: { 200: { description: 'Alive' } } } },
    '/v1/orders': {
      get: {
        security: [{ oauth2: ['orders:read'] }],
        parameters: [{ name: 'status', in: 'query', schema: { enum: ['open', 'preview'] } }],
        responses: { 200: { description: 'Orders', content: json({ type: 'object' }) }, '4XX': problem },
      },
      post: {
        security: [{ oauth2: ['orders:write'] }],
        requestBody: {
          required: true,
          content: { 'application/json': { schema: order, example: { item: 'Calzone' } } },
        },
        responses: { 201: { description: 'The order', content: json(order) }, '4XX': problem },
      },
    },
    '/v1/orders/{id}': {
      parameters: [id],
      get: {
        security: [{ oauth2: ['orders:read'] }],
        responses: { 200: { description: 'The order', content: json(order) }, '4XX': {} },
      },
      delete: { security: [{ oauth2: ['orders:write'] }], responses: { 204: { description: 'Removed' }, '4XX': {} } },
    },
  },
  components: {
    securitySchemes: {
      oauth2: {
        type: 'oauth2',
        flows: { clientCredentials: { tokenUrl: '/t', scopes: { 'orders:read': '', 'orders:write': '' } } },
      },
    },
  },
};

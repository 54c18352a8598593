import { Router } from 'express';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { requireScope, sendProblem } from 'tillgate';
import type { Collection } from './collection';
import { RESTAURANT } from './placeholders/restaurant';
import { RETAIL } from './placeholders/retail';
import { SALES } from './placeholders/sales';
import { RESOURCES, routesOf } from './resources';
import type { Action, Resource, ResourceName, Route } from './resources';

/** The sample data of every resource: a resource without an entry here does not compile. */
const PLACEHOLDERS: Readonly<Record<ResourceName, (clock: () => number) => Collection>> = {
  ...RETAIL,
  ...SALES,
  ...RESTAURANT,
};

/**
 * Makes the router of the commerce resources. Mount it at `/v1` after `authenticate()` and `requestValidation()`. Every
 * router has its own sample data.
 *
 * @param routers - routers with guards of their own, by path segment: one of the name of a resource runs in its place
 * @param placeholders - resources that have a placeholder unless a router runs in its place
 * @param clock - time of the sample data, in ms since the epoch
 *
 * @example
 * ```ts
 * const orders = Router();
 * orders.get('/', requireScope('orders:read'), listOrdersFromDatabase);
 *
 * app.use('/v1', gate, requestValidation(document), commerceRouter({ orders }));
 * ```
 */
export function commerceRouter(
  routers: Readonly<Record<string, Router>> = {},
  placeholders: readonly Resource[] = RESOURCES,
  clock: () => number = Date.now,
): Router {
  const router = Router();
  for (const [segment, own] of Object.entries(routers)) router.use(`/${segment}`, own);
  for (const resource of placeholders) {
    const { path } = resource;
    if (Object.hasOwn(routers, path)) continue;
    router.use(`/${path}`, resourceRouter(resource, PLACEHOLDERS[path as ResourceName](clock)));
  }
  return router;
}

const DEFAULT_LIMIT = 20;

/** Makes the placeholder router of one resource: each of its routes, with its guard directly before its handler. */
function resourceRouter(resource: Resource, rows: Collection): Router {
  const router = Router();
  const prefix = `/v1/${resource.path}`;
  router.use(markPlaceholder);
  for (const route of routesOf(resource)) {
    const path = route.path.slice(prefix.length).replace('{id}', ':id') || '/';
    const method = route.method.toLowerCase() as Lowercase<Route['method']>;
    const { scopes, operation } = route;
    const handler = typeof operation === 'string' ? HANDLERS[operation](rows) : actOn(rows, operation);
    router[method](path, requireScope(scopes), handler);
  }
  return router;
}

const HANDLERS: Readonly<Record<Resource['operations'][number], (rows: Collection) => RequestHandler>> = {
  list: (rows) =>
    function list(req, res) {
      const { limit = DEFAULT_LIMIT, cursor } = req.query;
      const after = cursor === undefined ? 0 : readCursor(cursor);
      if (after === undefined) return refuseCursor(req, res);
      const page = rows.page(Number(limit), after);
      const data = page.rows.map((row) => rows.present(row, scopesOf(req)));
      res.json({ data, next_cursor: page.last === undefined ? null : writeCursor(page.last) });
    },

  create: (rows) =>
    function create(req, res) {
      const row = rows.create(bodyOf(req));
      res
        .status(201)
        .location(`${req.baseUrl}/${row.id}`)
        .json(rows.present(row, scopesOf(req)));
    },

  get: (rows) =>
    function get(req, res) {
      const row = rows.find(idOf(req));
      if (!row) return refuseUnknown(req, res);
      res.json(rows.present(row, scopesOf(req)));
    },

  update: (rows) =>
    function update(req, res) {
      const row = rows.update(idOf(req), bodyOf(req));
      if (!row) return refuseUnknown(req, res);
      res.json(rows.present(row, scopesOf(req)));
    },

  remove: (rows) =>
    function remove(req, res) {
      if (!rows.remove(idOf(req))) return refuseUnknown(req, res);
      res.sendStatus(204);
    },
};

function actOn(rows: Collection, { name, reference, creates }: Action): RequestHandler {
  return function act(req, res) {
    const id = reference === undefined ? idOf(req) : String(bodyOf(req)[reference]);
    const outcome = rows.act(name, id, bodyOf(req));
    if (!outcome) {
      return reference === undefined
        ? refuseUnknown(req, res)
        : refuseConflict(req, res, `The ${reference} of the body does not exist.`);
    }
    if ('conflict' in outcome) return refuseConflict(req, res, outcome.conflict);
    if (creates) res.status(201).location(`${req.baseUrl}/${id}`);
    res.json(outcome.response ?? rows.present(outcome.row, scopesOf(req)));
  };
}

/** Marks every response as sample data, refusals included. */
function markPlaceholder(_req: Request, res: Response, next: NextFunction): void {
  res.setHeader('X-Placeholder', 'true');
  next();
}

function refuseUnknown(req: Request, res: Response): void {
  sendProblem(req, res, { status: 404, code: 'not_found', detail: 'No row has this id.' });
}

function refuseConflict(req: Request, res: Response, detail: string): void {
  sendProblem(req, res, { status: 409, code: 'conflict', detail });
}

function refuseCursor(req: Request, res: Response): void {
  sendProblem(req, res, {
    status: 400,
    code: 'invalid_request',
    title: 'Invalid request',
    detail: 'Unknown cursor: use next_cursor from the previous page, or omit it.',
    members: { errors: [{ path: '/query/cursor', message: 'must be the next_cursor of another page of this list' }] },
  });
}

function idOf(req: Request): string {
  return String(req.params['id']);
}

function bodyOf(req: Request): Readonly<Record<string, unknown>> {
  return (req.body ?? {}) as Readonly<Record<string, unknown>>;
}

function scopesOf(req: Request): readonly string[] {
  return req.auth?.scopes ?? [];
}

const CURSOR_BASE = 36;

/** Encodes the number of the last row of a page: callers must not depend on its content. */
function writeCursor(last: number): string {
  return last.toString(CURSOR_BASE);
}

/** Decodes what fits the pattern in openapi.yaml, which another document need not have; `undefined` for anything else. */
function readCursor(cursor: unknown): number | undefined {
  return typeof cursor === 'string' && /^[0-9a-z]{1,9}$/.test(cursor) ? parseInt(cursor, CURSOR_BASE) : undefined;
}

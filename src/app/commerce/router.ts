import { Router } from 'express';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { requireScope, sendProblem } from 'tillgate';
import { examplesOf } from '../contract';
import type { Contract } from '../contract';
import { requestValidation } from '../validation';
import type { Action, Row } from './actions';
import { collection } from './collection';
import { RESOURCES } from './resources';
import type { Resource } from './resources';

/** Method, path below the resource, and the half of the scope family that each operation needs. */
const OPERATIONS = {
  list: ['get', '', 'read'],
  create: ['post', '', 'write'],
  get: ['get', '/{id}', 'read'],
  update: ['patch', '/{id}', 'write'],
  remove: ['delete', '/{id}', 'write'],
} as const;

/**
 * Makes the router of the commerce resources, to mount at `/v1` after `authenticate()`. To serve a resource from your database,
 * take its row out of the table and mount your own router here.
 *
 * @param clock - time of the sample data, in ms since the epoch
 */
export function commerceRouter(contract: Contract, clock: () => number = Date.now): Router {
  const router = Router();
  const validate = requestValidation(contract);
  for (const resource of RESOURCES) {
    const routes = routesOf(resource, placeholder(resource, examplesOf(contract, resource.schema), clock));
    for (const path of new Set(routes.map((route) => route.path))) {
      const here = routes.filter((route) => route.path === path);
      const route = router.route(`/${resource.path}${path.replace('{id}', ':id')}`);
      for (const { method, scope, handler } of here) {
        const validation = validate(method, `/v1/${resource.path}${path}`);
        route[method](requireScope(scope), validation, markPlaceholder, handler);
      }
      route.all(refuseMethod(here.map(({ method }) => (method === 'get' ? 'GET, HEAD' : method.toUpperCase()))));
    }
  }
  return router;
}

interface Route {
  readonly method: 'get' | 'post' | 'patch' | 'delete';
  /** Below the resource. */
  readonly path: string;
  readonly scope: string;
  readonly handler: RequestHandler;
}

/** The routes of one resource; actions first, because some have a path that could be an id. */
function routesOf({ scopes, operations, actions = [] }: Resource, handlers: ReturnType<typeof placeholder>): Route[] {
  return [
    ...actions.map((one): Route => ({ method: 'post', path: one.path, scope: one.scope, handler: handlers.act(one) })),
    ...operations.map((operation): Route => {
      const [method, path, access] = OPERATIONS[operation];
      return { method, path, scope: `${scopes}:${access}`, handler: handlers[operation] };
    }),
  ];
}

const DEFAULT_LIMIT = 20;

/** The handlers of one resource, with sample data of their own. */
function placeholder(
  { path, rules = {} }: Resource,
  sample: readonly object[],
  clock: () => number,
): Record<keyof typeof OPERATIONS, RequestHandler> & { readonly act: (action: Action) => RequestHandler } {
  const now = (): string => new Date(clock()).toISOString();
  const rows = collection(sample, rules, now);

  function shown(req: Request, row: Row): Row {
    return rules.present?.(row, req.auth?.scopes ?? []) ?? row;
  }

  return {
    list(req: Request, res: Response) {
      const { limit = DEFAULT_LIMIT, cursor } = req.query;
      const after = typeof cursor === 'string' ? parseInt(cursor, CURSOR_BASE) : 0;
      const page = rows.page(Number(limit), after);
      // Callers must not depend on the content of a cursor: it is the number of a row.
      const next_cursor = page.last === undefined ? null : page.last.toString(CURSOR_BASE);
      res.json({ data: page.rows.map((row) => shown(req, row)), next_cursor });
    },

    create(req: Request, res: Response) {
      const row = rows.create(req.body as object);
      res.status(201).location(`${req.baseUrl}/${path}/${row.id}`).json(shown(req, row));
    },

    get(req: Request, res: Response) {
      const row = rows.find(idOf(req));
      if (row) res.json(shown(req, row));
      else refuseUnknown(req, res);
    },

    update(req: Request, res: Response) {
      const row = rows.update(idOf(req), req.body as object);
      if (row) res.json(shown(req, row));
      else refuseUnknown(req, res);
    },

    remove(req: Request, res: Response) {
      if (!rows.remove(idOf(req))) return refuseUnknown(req, res);
      res.sendStatus(204);
    },

    act: (action: Action): RequestHandler =>
      function actOnRow(req, res) {
        const { rowId, creates } = action;
        const input = (req.body ?? {}) as Readonly<Record<string, unknown>>;
        const id = rowId === undefined ? idOf(req) : String(input[rowId]);
        const row = rows.find(id);
        if (!row && rowId === undefined) return refuseUnknown(req, res);
        if (!row) return refuseConflict(req, res, `The ${rowId} of the body does not exist.`);
        const outcome = action.act(row, input, now());
        if ('conflict' in outcome) return refuseConflict(req, res, outcome.conflict);
        rows.replace(outcome.row);
        if (creates) res.status(201).location(`${req.baseUrl}/${path}/${id}`);
        res.json(outcome.response ?? shown(req, outcome.row));
      },
  };
}

const CURSOR_BASE = 36;

function markPlaceholder(_req: Request, res: Response, next: NextFunction): void {
  res.set('X-Placeholder', 'true');
  next();
}

function idOf(req: Request): string {
  return String(req.params['id']);
}

/** Refuses every method of a path but these. */
function refuseMethod(allowed: readonly string[]): RequestHandler {
  const allow = allowed.join(', ');
  return function refuseMethod(req, res) {
    const detail = `This resource supports ${allow}.`;
    sendProblem(req, res, { status: 405, code: 'method_not_allowed', detail, headers: { Allow: allow } });
  };
}

function refuseUnknown(req: Request, res: Response): void {
  sendProblem(req, res, { status: 404, code: 'not_found', detail: 'No row has this id.' });
}

function refuseConflict(req: Request, res: Response, detail: string): void {
  sendProblem(req, res, { status: 409, code: 'conflict', detail });
}

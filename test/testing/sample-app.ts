import express from 'express';
import type { ErrorRequestHandler, Express, RequestHandler, Router } from 'express';
import { join } from 'node:path';
import { authenticate, problemHandler, requireScope } from '../../src';
import type { Logger, ScopeRequirement } from '../../src';
import type { TestIssuer } from '../../src/testing';

/** The document of the sample app. */
export const SAMPLE_DOCUMENT = join(__dirname, 'sample-openapi.yaml');

/** What the sample app is assembled from: a bug takes the place of one of these. */
export interface SampleParts {
  /** Stands before everything. */
  readonly first: RequestHandler;
  readonly gate: RequestHandler;
  readonly listOrders: readonly RequestHandler[];
  readonly placeOrder: readonly RequestHandler[];
  readonly getOrder: readonly RequestHandler[];
  readonly removeOrder: readonly RequestHandler[];
  readonly whoAmI: readonly RequestHandler[];
  /** Adds routes behind the gate. */
  readonly more: (router: Router) => void;
  readonly errors: ErrorRequestHandler;
}

const ORDER = { id: 'o-1', item: 'itm_0001', quantity: 1 };

/** Answers with one order. */
export const answerOrder: RequestHandler = function answerOrder(_req, res) {
  res.json(ORDER);
};

/** Answers with a list of orders. */
export const answerOrders: RequestHandler = function answerOrders(_req, res) {
  res.json([ORDER]);
};

/** Answers that an order has been placed. */
export const answerPlaced: RequestHandler = function answerPlaced(_req, res) {
  res.status(201).json(ORDER);
};

const answerRemoved: RequestHandler = function answerRemoved(_req, res) {
  res.sendStatus(204);
};

/** Who checks tokens and scopes. */
export interface SampleGuards {
  readonly gate: RequestHandler;
  readonly guard: (need: ScopeRequirement) => RequestHandler;
}

/** Tillgate's own. */
export function tillgate(issuer: TestIssuer): SampleGuards {
  return {
    gate: authenticate({ ...issuer.options, logger: silent }),
    guard: (need) => ('anyOf' in need ? requireScope(need) : requireScope(need.allOf)),
  };
}

/** The correct parts. */
export function sampleParts({ gate, guard }: SampleGuards): SampleParts {
  return {
    first: (_req, _res, next) => next(),
    gate,
    listOrders: [guard({ allOf: ['orders:read'] }), answerOrders],
    placeOrder: [express.json(), guard({ allOf: ['orders:write', 'items:read'] }), answerPlaced],
    getOrder: [guard({ allOf: ['orders:read'] }), answerOrder],
    removeOrder: [guard({ anyOf: ['orders:remove', 'admin'] }), answerRemoved],
    whoAmI: [(req, res) => void res.json({ client: req.auth?.clientId })],
    more: () => {},
    errors: problemHandler({ logger: silent }),
  };
}

/** Puts an app together, of Express 5 unless told otherwise. */
export function assemble(
  parts: SampleParts,
  make: Pick<typeof express, 'Router'> & (() => Express) = express,
): Express {
  const api = make.Router();
  api.get('/health', (_req, res) => void res.json({ status: 'ok' }));
  api.use(parts.gate);
  api.get('/orders', ...parts.listOrders);
  api.post('/orders', ...parts.placeOrder);
  if (parts.getOrder.length > 0) api.get('/orders/:id', ...parts.getOrder);
  api.delete('/orders/:id', ...parts.removeOrder);
  api.get('/whoami', ...parts.whoAmI);
  parts.more(api);

  const app = make();
  app.use(parts.first);
  app.use('/api', api);
  app.use(parts.errors);
  return app;
}

/** A logger that says nothing. */
export const silent: Logger = { info() {}, warn() {}, error() {} };

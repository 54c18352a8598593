import express from 'express';
import type { ErrorRequestHandler, Express, RequestHandler, Router } from 'express';
import { join } from 'node:path';
import { authenticate, problemHandler, requireScope } from '../../src/gate';
import type { Logger } from '../../src/gate';
import type { ScopeRequirement } from '../../src/gate/verifier/scope-requirement';
import type { TestIssuer } from '../../src/testing';

/** The document of the sample app. */
export const SAMPLE_DOCUMENT = join(__dirname, 'sample-openapi.yaml');

/** The parts of the sample app; a bug replaces one of them. */
export interface SampleParts {
  /** Runs before everything else. */
  readonly first: RequestHandler;
  readonly gate: RequestHandler;
  readonly listOrders: readonly RequestHandler[];
  readonly placeOrder: readonly RequestHandler[];
  readonly getOrder: readonly RequestHandler[];
  readonly removeOrder: readonly RequestHandler[];
  readonly whoAmI: readonly RequestHandler[];
  /** Adds routes after the gate. */
  readonly more: (router: Router) => void;
  readonly errors: ErrorRequestHandler;
}

const ORDER = { id: 'o-1', item: 'itm_0001', quantity: 1 };

/** Sends one order. */
export const sendOrder: RequestHandler = function sendOrder(_req, res) {
  res.json(ORDER);
};

/** Sends a list of orders. */
export const sendOrders: RequestHandler = function sendOrders(_req, res) {
  res.json([ORDER]);
};

/** Sends a created order. */
export const sendPlaced: RequestHandler = function sendPlaced(_req, res) {
  res.status(201).json(ORDER);
};

const sendRemoved: RequestHandler = function sendRemoved(_req, res) {
  res.sendStatus(204);
};

/** The gate and guards of the sample app. */
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
    listOrders: [guard({ allOf: ['orders:read'] }), sendOrders],
    placeOrder: [express.json(), guard({ allOf: ['orders:write', 'items:read'] }), sendPlaced],
    getOrder: [guard({ allOf: ['orders:read'] }), sendOrder],
    removeOrder: [guard({ anyOf: ['orders:remove', 'admin'] }), sendRemoved],
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

/** A logger without output. */
export const silent: Logger = { info() {}, warn() {}, error() {} };

import express from 'express';
import type { Express, RequestHandler } from 'express';
import request from 'supertest';
import type { Test } from 'supertest';
import { authenticate, problemHandler, requireScope } from '../../src/gate/index';
import type { AuthenticateOptions, Decision, Gate } from '../../src/gate/index';
import { createGate } from '../../src/gate/express/authenticate';
import type { GateInternals } from '../../src/gate/verifier/read-options';
import { splitInternals } from './gate-internals';
import { AUDIENCE, ISSUER, NOW_MS } from './issuer';
import { jwks, testKey } from './keys';
import { recordingLogger } from './log';
import type { RecordingLogger } from './log';

/** A real Express app with a gate, and a record of what reached its handlers. */
export interface GateApp {
  readonly app: Express;
  readonly gate: Gate;
  /** Requests that reached a handler: `GET /v1/orders`. */
  readonly reached: string[];
  /** Authorization headers that were received. */
  readonly presented: string[];
  readonly log: RecordingLogger;
  readonly decisions: Decision[];
  /** GET with a bearer token, or without one. */
  get(token?: string, path?: string): Test;
  post(token?: string, path?: string): Test;
}

/** Options of the gate. Default: the ES256 key of the test issuer, at the fixed time of the tests. */
export type GateAppOptions = Partial<AuthenticateOptions & GateInternals> & {
  /** Adds routes after the gate, instead of the default ones. */
  readonly routes?: (app: Express, reach: RequestHandler) => void;
};

export function gateApp({ routes = orderRoutes, ...given }: GateAppOptions = {}): GateApp {
  const [options, internals] = splitInternals(given);
  const log = recordingLogger();
  const reached: string[] = [];
  const presented: string[] = [];
  const decisions: Decision[] = [];
  const issuerDefaults = 'issuers' in options ? {} : { issuer: ISSUER, audience: AUDIENCE };
  const keyDefaults =
    'issuers' in options || 'fetch' in options || 'jwksUri' in options ? {} : { keys: jwks(testKey()) };
  const gateOptions = {
    ...issuerDefaults,
    ...keyDefaults,
    clock: () => NOW_MS,
    logger: log,
    onDecision: (decision: Decision) => void decisions.push(decision),
    ...options,
  } as AuthenticateOptions;
  const gate = createGate(gateOptions, internals);

  const app = express();
  app.use((req, _res, next) => {
    presented.push(req.headers.authorization ?? '');
    next();
  });
  app.use(express.json({ strict: false }), express.urlencoded({ extended: true }), express.text());
  app.use('/v1', gate);
  routes(app, (req, res) => {
    reached.push(`${req.method} ${req.path}`);
    res.json({ auth: req.auth ?? null, body: (req.body as unknown) ?? null });
  });
  app.use(problemHandler({ logger: log }));

  return {
    app,
    gate,
    reached,
    presented,
    log,
    decisions,
    get: (token, path = '/v1/orders') => getFrom(app, token, path),
    post: (token, path = '/v1/orders') => withToken(request(app).post(path), token),
  };
}

/** GET with a bearer token, or without one. */
export function getFrom(app: Parameters<typeof request>[0], token?: string, path = '/'): Test {
  return withToken(request(app).get(path), token);
}

/** A request with a bearer token, or without one. */
export function withToken(test: Test, token: string | undefined): Test {
  return token === undefined ? test : test.auth(token, { type: 'bearer' });
}

/** A gate of the test issuer, at the fixed time of the tests, without an app. Default logger: one that nobody reads. */
export function testGate(options: Partial<AuthenticateOptions> = {}): Gate {
  const trusted = { issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()), clock: () => NOW_MS };
  return authenticate({ ...trusted, logger: recordingLogger(), ...options } as AuthenticateOptions);
}

/** Sends a good token until it is cached, which it is at its second request; what was reached until then is forgotten. */
export async function remember(through: Pick<GateApp, 'get' | 'reached'>, token: string): Promise<void> {
  await through.get(token).expect(200);
  await through.get(token).expect(200);
  through.reached.length = 0;
}

function orderRoutes(app: Express, reach: RequestHandler): void {
  app.get('/v1/orders', requireScope('orders:read'), reach);
  app.post('/v1/orders', requireScope('orders:write'), reach);
  app.patch('/v1/orders', requireScope('orders:write'), reach);
}

import { createPublicKey, verify } from 'node:crypto';
import type { JsonWebKey } from 'node:crypto';
import express from 'express';
import type { Express, NextFunction, Request, RequestHandler, Response } from 'express';
import { rateLimit } from 'express-rate-limit';
import cors from 'cors';
import { authenticate, requireAuthenticated, requireScope } from '../../../src/gate';
import { contractCases, createTestIssuer } from '../../../src/testing';
import type { TestIssuer } from '../../../src/testing';
import { failuresOf } from '../../testing/failures-of';
import { silent } from '../../testing/sample-app';

/** Correct ways to protect the same route, none of which may fail a case, without any option. */
type Idiom = (app: Express, issuer: TestIssuer) => void;

const DOCUMENT = {
  openapi: '3.1.0',
  paths: {
    '/health': { get: { security: [], responses: { 200: {} } } },
    '/v1/orders': {
      get: { security: [{ oauth2: ['orders:read'] }], responses: { 200: {} } },
      post: {
        security: [{ oauth2: ['orders:write'] }],
        requestBody: { content: { 'application/json': { schema: { type: 'object' }, example: { item: 'Calzone' } } } },
        responses: { 201: {} },
      },
    },
  },
  components: { securitySchemes: { oauth2: { type: 'oauth2' } } },
};

const list: RequestHandler = (_req, res) => void res.json({ orders: [{ id: 'order-one' }] });
const place: RequestHandler = (_req, res) => void res.status(201).json({ id: 'order-two' });
const pass: RequestHandler = (_req, _res, next) => next();
const read = (): RequestHandler => requireScope('orders:read') as RequestHandler;
const write = (): RequestHandler => requireScope('orders:write') as RequestHandler;
const gateOf = (issuer: TestIssuer): RequestHandler =>
  authenticate({ ...issuer.options, logger: silent }) as RequestHandler;

/** What a short tutorial builds: a JSON body, no challenge, no generation. */
interface Claims {
  readonly iss: string;
  readonly aud: string;
  readonly exp: number;
  readonly nbf?: number;
  readonly scope?: unknown;
}

function readToken(req: Request, issuer: TestIssuer): Claims | undefined {
  const token = /^Bearer (\S+)$/i.exec(req.headers.authorization ?? '')?.[1];
  if (token === undefined) return undefined;
  try {
    const [head = '', payload = '', signature = ''] = token.split('.');
    const decode = (part: string): unknown => JSON.parse(Buffer.from(part, 'base64url').toString());
    const { alg, kid } = decode(head) as { alg: string; kid: string };
    const { keys } = issuer.options as unknown as { keys: { keys: readonly (JsonWebKey & { kid: string })[] } };
    const jwk = keys.keys.find((one) => one.kid === kid);
    if (alg !== 'ES256' || !jwk) return undefined;
    const key = { key: createPublicKey({ key: jwk, format: 'jwk' }), dsaEncoding: 'ieee-p1363' } as const;
    if (!verify('sha256', Buffer.from(`${head}.${payload}`), key, Buffer.from(signature, 'base64url')))
      return undefined;
    const claims = decode(payload) as Claims;
    const nowSeconds = Date.now() / 1000;
    const isGood =
      claims.iss === issuer.issuer &&
      claims.aud === issuer.audience &&
      claims.exp > nowSeconds &&
      (claims.nbf ?? 0) <= nowSeconds;
    return isGood ? claims : undefined;
  } catch {
    return undefined;
  }
}

function scopesOf({ scope }: Claims): readonly string[] {
  return typeof scope === 'string' ? scope.split(' ') : [];
}

const asyncHandler =
  (handler: (req: Request, res: Response, next: NextFunction) => unknown): RequestHandler =>
  (req, res, next) => {
    Promise.resolve(handler(req, res, next)).catch(next);
  };

const IDIOMS: Readonly<Record<string, Idiom>> = {
  Tillgate: (app, issuer) => {
    app.use('/v1', gateOf(issuer));
    app.get('/v1/orders', read(), list).post('/v1/orders', express.json(), write(), place);
  },
  'a rate limiter before the guard': (app, issuer) => {
    const limiter = rateLimit({ windowMs: 60_000, limit: 100_000 });
    app.use('/v1', gateOf(issuer));
    app.get('/v1/orders', limiter, read(), list).post('/v1/orders', limiter, write(), place);
  },
  'a rate limit that the attacks alone would exceed': (app, issuer) => {
    app.use(rateLimit({ windowMs: 900_000, limit: 100 }));
    app.use('/v1', gateOf(issuer));
    app.get('/v1/orders', read(), list).post('/v1/orders', express.json(), write(), place);
  },
  'validators, and a function of its own': (app, issuer) => {
    const validate: RequestHandler = (_req, _res, next) => next();
    app.use('/v1', gateOf(issuer));
    app.get('/v1/orders', validate, read(), list).post('/v1/orders', express.json(), validate, pass, write(), place);
  },
  'cors on the route': (app, issuer) => {
    app.options('/v1/orders', cors());
    app.use('/v1', gateOf(issuer));
    app.get('/v1/orders', cors(), read(), list).post('/v1/orders', cors(), write(), place);
  },
  'a wrapped guard': (app, issuer) => {
    app.use('/v1', asyncHandler(gateOf(issuer)));
    app.get('/v1/orders', asyncHandler(read()), list).post('/v1/orders', asyncHandler(write()), place);
  },
  'guards in a row': (app, issuer) => {
    app.use('/v1', gateOf(issuer), requireAuthenticated() as RequestHandler);
    app.get('/v1/orders', read(), list).post('/v1/orders', write(), place);
  },
  'a gate on each route': (app, issuer) => {
    app.get('/v1/orders', gateOf(issuer), read(), list).post('/v1/orders', gateOf(issuer), write(), place);
  },
  'a mounted app': (app, issuer) => {
    const inner = express();
    inner.use(gateOf(issuer));
    inner.get('/orders', read(), list).post('/orders', write(), place);
    app.use('/v1', inner);
  },
  'a router of routers': (app, issuer) => {
    const orders = express.Router();
    orders.route('/').get(read(), list).post(write(), place);
    const version = express.Router().use(gateOf(issuer)).use('/orders', orders);
    app.use('/v1', version);
  },
  'a page for every other path': (app, issuer) => {
    app.use('/v1', gateOf(issuer));
    app.get('/v1/orders', read(), list).post('/v1/orders', write(), place);
    app.use((_req, res) => void res.type('html').send('<!doctype html><title>Shop</title>'));
  },
  'a guard inside the handler': (app, issuer) => {
    const within = (scope: string, handler: RequestHandler): RequestHandler =>
      function guarded(req, res, next) {
        const claims = readToken(req, issuer);
        if (!claims) return void res.status(401).json({ error: 'Unauthorized' });
        if (!scopesOf(claims).includes(scope)) return void res.status(403).json({ error: 'Forbidden' });
        void handler(req, res, next);
      };
    app.get('/v1/orders', within('orders:read', list)).post('/v1/orders', within('orders:write', place));
  },
  'a handler that throws when it may not': (app, issuer) => {
    const within = (scope: string, handler: RequestHandler): RequestHandler =>
      asyncHandler(async (req, res, next) => {
        await Promise.resolve();
        const claims = readToken(req, issuer);
        if (!claims) throw Object.assign(new Error('Unauthorized'), { status: 401 });
        if (!scopesOf(claims).includes(scope)) throw Object.assign(new Error('Forbidden'), { status: 403 });
        await handler(req, res, next);
      });
    app.get('/v1/orders', within('orders:read', list)).post('/v1/orders', within('orders:write', place));
    app.use((error: Error & { status?: number }, _req: Request, res: Response, _next: NextFunction) => {
      res.status(error.status ?? 500).json({ message: error.message });
    });
  },
  'a middleware for tokens and one for scopes, without a challenge': (app, issuer) => {
    const claimsOf = new WeakMap<Request, Claims>();
    const requireToken: RequestHandler = (req, res, next) => {
      const claims = readToken(req, issuer);
      if (!claims) return void res.sendStatus(401);
      claimsOf.set(req, claims);
      next();
    };
    const may =
      (scope: string): RequestHandler =>
      (req, res, next) =>
        scopesOf(claimsOf.get(req) as Claims).includes(scope) ? next() : void res.sendStatus(403);
    app.get('/v1/orders', requireToken, may('orders:read'), list);
    app.post('/v1/orders', requireToken, may('orders:write'), place);
  },
  'streams, redirects and 202': (app, issuer) => {
    app.use('/v1', gateOf(issuer));
    app.get('/v1/orders', read(), (_req, res) => void res.type('text/event-stream').write('data: 1\n\n'));
    app.post('/v1/orders', write(), (_req, res) => void res.redirect(303, '/health'));
  },
  'a page for every path, also to POST': (app, issuer) => {
    app.use('/v1', gateOf(issuer));
    app.get('/v1/orders', read(), list).post('/v1/orders', express.json(), write(), place);
    app.use(express.text({ type: '*/*' }), (req, res) => void res.json({ echo: req.body as unknown, path: req.path }));
  },
  'the next route': (app, issuer) => {
    app.use('/v1', gateOf(issuer));
    app.get(
      '/v1/orders',
      read(),
      (req, _res, next) => next(req.query['none'] === undefined ? 'route' : undefined),
      list,
    );
    app.get('/v1/orders', read(), list).post('/v1/orders', write(), place);
  },
};

it.each(Object.entries(IDIOMS))('no case fails for %s', async (_name, build) => {
  const issuer = createTestIssuer();
  const app = express();
  app.get('/health', (_req, res) => void res.json({ status: 'ok' }));
  build(app, issuer);
  const cases = contractCases({ app, openapi: DOCUMENT, issuer });
  expect(await failuresOf(cases)).toEqual([]);
  // What generators of documents leave out is told once for each operation.
  const { documentation } = cases.report();
  expect(documentation.filter((line) => line.startsWith('GET /v1/orders: '))).toHaveLength(1);
  expect(documentation[0]).toContain('401');
});

import express from 'express';
import type { RequestHandler } from 'express';
import { requireClaim, requireScope, authenticate, reportOnly, requireAuthenticated } from '../../../src/gate';
import { audit, documentOf, done, FLAVOURS, gate, pass } from './sample';
import type { Operations } from './sample';
import { contractCases, createTestIssuer } from '../../../src/testing';
import { failuresOf } from '../failures-of';
import { silent } from '../sample-app';

const orders: Operations = {
  'GET /v1/orders': ['orders:read'],
  'POST /v1/orders': ['orders:write'],
  'GET /v1/orders/{id}': ['orders:read'],
};
const read = requireScope('orders:read');
const write = requireScope('orders:write');

describe.each(FLAVOURS)('auditRoutes() of %s', (_name, { createApp, createRouter }) => {
  const gated = () => createApp().use('/v1', gate());

  it('finds nothing where all is well', () => {
    const app = gated();
    app.get('/v1/orders', read, done);
    app.post('/v1/orders', write, done);
    app.get('/v1/orders/:order_id', read, done);
    expect(audit(app, documentOf(orders))).toEqual([]);
  });

  it('reads nested routers, mounted with parameters', () => {
    const [app, stores, tables] = [createApp(), createRouter(), createRouter()] as const;
    tables.get('/', requireScope('tables:read'), done);
    tables.get('/:table', done);
    stores.use('/:store/tables', tables);
    app.use('/v1/stores', gate(), stores);
    const document = documentOf({
      'GET /v1/stores/{store_id}/tables': ['tables:read'],
      'GET /v1/stores/{store_id}/tables/{table_id}': ['tables:read'],
    });
    expect(audit(app, document)).toEqual(['unguarded-route GET /v1/stores/{store_id}/tables/{table_id}']);
  });

  it('reads a router that is mounted at several paths', () => {
    const [app, router] = [createApp(), createRouter()];
    router.get('/items', read, done);
    app.use(['/v1', '/v2'], gate(), router);
    const document = documentOf({ 'GET /v1/items': ['orders:read'], 'GET /v2/items': ['orders:read'] });
    expect(audit(app, document)).toEqual([]);
  });

  it('reads arrays of handlers, and guards among other middlewares', () => {
    const app = createApp();
    app.use(pass, [gate(), pass]);
    app.get('/v1/orders', [pass, read], pass, done);
    app.post('/v1/orders', [write, done]);
    app.get('/v1/orders/:id', pass, read, done);
    expect(audit(app, documentOf(orders))).toEqual([]);
  });

  it('counts a gate or guard on trial as nothing: neither as one that decides nor as a handler', () => {
    const app = createApp();
    app.use('/v1', reportOnly(authenticate({ ...createTestIssuer().options, logger: silent })));
    app.get('/v1/orders', reportOnly(read), done);
    app.use('/v1', gate());
    app.post('/v1/orders', reportOnly(read), write, reportOnly(read), done);
    app.get('/v1/orders/:id', reportOnly(read), done);
    expect(audit(app, documentOf(orders))).toEqual([
      'unguarded-route GET /v1/orders',
      'unguarded-route GET /v1/orders/{id}',
      'unused-scope * *',
    ]);
  });

  it('counts a guard on a path for what is below it and comes later', () => {
    const app = gated();
    app.get('/v1/admin/early', done);
    app.use('/v1/admin', requireScope('admin'));
    app.get('/v1/admin/late', done);
    app.get('/v1/other', done);
    const document = documentOf({
      'GET /v1/admin/early': ['admin'],
      'GET /v1/admin/late': ['admin'],
      'GET /v1/other': ['admin'],
    });
    expect(audit(app, document)).toEqual(['guard-after-handler GET /v1/admin/early', 'unguarded-route GET /v1/other']);
  });

  it('counts guards and gates in a nested router', () => {
    const [app, secured, routes] = [createApp(), createRouter(), createRouter()];
    secured.use(gate(), requireScope('orders:read'));
    routes.get('/orders', done);
    app.use('/v1', secured, routes);
    expect(audit(app, documentOf({ 'GET /v1/orders': ['orders:read'] }))).toEqual([]);
  });

  it('takes all() with a guard for a prelude, and all() with a handler for every operation of its path', () => {
    const app = gated();
    app.all('/v1/orders/:id', read);
    app.get('/v1/orders/:id', done);
    app.all('/v1/orders', read, done);
    expect(audit(app, documentOf(orders))).toEqual(['wrong-requirement POST /v1/orders', 'unused-scope * *']);
  });

  it('takes all() along with methods for the 405 handler', () => {
    const app = gated();
    app.route('/v1/orders').get(read, done).post(write, done).all(done);
    app.route('/v1/orders/:id').all(pass).get(read, done);
    app.all(catchAll(app), done);
    expect(audit(app, documentOf(orders))).toEqual([]);
  });

  it('fits several guards to all of their scopes, and a claim to a token with no scope', () => {
    const app = gated();
    app.get('/v1/both', read, write, done);
    app.get('/v1/claim', requireClaim('store', Boolean), done);
    app.get('/v1/token', done);
    const document = documentOf({
      'GET /v1/both': ['orders:write', 'orders:read'],
      'GET /v1/claim': [],
      'GET /v1/token': [],
    });
    expect(audit(app, document)).toEqual([]);
  });

  it('reads parameters with a pattern, by a value that fits', () => {
    const app = gated();
    app.get(/^\/v1\/orders\/(\d+)$/, read, done);
    expect(audit(app, documentOf({ 'GET /v1/orders/{id}': ['orders:read'] }))).toEqual([]);
  });

  it('finds the root, and paths with a slash at their end', () => {
    const app = createApp();
    app.get('/', done).get('/health/', done);
    expect(audit(app, documentOf({ 'GET /': null, 'GET /health': null }))).toEqual([]);
    expect(audit(app, documentOf({ 'GET /': null, 'GET /health/': null }))).toEqual([]);
    expect(audit(app, documentOf({}))).toEqual(['undocumented-route GET /', 'undocumented-route GET /health']);
  });

  it('reports a guard that runs only for some values of a parameter', () => {
    const app = gated();
    app.use(/^\/v1\/orders\/[a-z]+$/, read);
    app.get('/v1/orders/:id', done);
    expect(audit(app, documentOf({ 'GET /v1/orders/{id}': ['orders:read'] }))).toEqual([
      'unguarded-route GET /v1/orders/{id}',
    ]);
  });

  it('says so where something cannot be read', () => {
    const [app, inner, outer] = [createApp(), createRouter(), createApp()];
    inner.get('/users', done);
    app.use(/^\/(internal|private)/, inner);
    outer.get('/', done);
    app.use('/sub', outer);
    const found = audit(app, documentOf({}));
    expect(found).toHaveLength(2);
    expect(found).toContain('unreadable-route * (unreadable)/users');
    expect(found.join()).toMatch(/unreadable-route \* (\/sub|\(unreadable\)(,|$))/);
  });

  it('does not take a parameter of Express for a word of the document', () => {
    const [app, router] = [createApp(), createRouter()];
    router.get('/orders', read, done);
    app.use('/:tenant', gate(), router);
    const found = audit(app, documentOf({ 'GET /v1/orders': ['orders:read'] }));
    expect(found).toContain('missing-route GET /v1/orders');
    expect(found.join()).toMatch(
      /undocumented-route GET \/\{tenant\}\/orders|unreadable-route \* \(unreadable\)\/orders/,
    );
  });

  it('keeps its order whatever the order of the routes', () => {
    const [first, second] = [createApp(), createApp()];
    const paths = ['/c', '/a', '/b'];
    for (const path of paths) first.get(path, done).post(path, done);
    for (const path of [...paths].reverse()) second.post(path, done).get(path, done);
    const found = audit(first, documentOf({}));
    expect(found).toEqual(['/a', '/b', '/c'].flatMap((path) => ['GET', 'POST'].map((method) => line(method, path))));
    expect(audit(second, documentOf({}))).toEqual(found);
  });
});

function line(method: string, path: string): string {
  return `undocumented-route ${method} ${path}`;
}

function catchAll(app: object): string {
  return '_router' in app ? '*' : '/{*rest}';
}

const GUARD = Symbol.for('tillgate.guard');

/** A middleware with extra members. */
function withMembers(members: object): RequestHandler {
  return Object.assign(((_req, _res, next) => next()) as RequestHandler, members);
}

function findings(guard: RequestHandler, scopes: readonly string[]): readonly string[] {
  const app = express();
  app.get('/v1/orders', gate(), guard, done);
  return audit(app, documentOf({ 'GET /v1/orders': scopes })).filter((finding) => !finding.startsWith('unused-scope'));
}

describe('guards in auditRoutes()', () => {
  it.each([
    ['all of some scopes', { allOf: ['orders:read'] }, ['orders:read']],
    ['any of some scopes', { anyOf: ['orders:read'] }, ['orders:read']],
    ['a claim', { claim: 'store' }, []],
    ['any token', {}, []],
  ])('are recognised by their symbol, also those of another copy of the package: %s', (_what, requirement, scopes) => {
    expect(findings(withMembers({ [GUARD]: requirement }), scopes)).toEqual([]);
  });

  it.each([
    ['claim', { claim: 'store' }],
    ['requirement', { requirement: { allOf: ['orders:read'] } }],
  ])('are not recognised by a member named %s, which any function may have', (_name, members) => {
    expect(findings(withMembers(members), ['orders:read'])).toEqual(['unguarded-route GET /v1/orders']);
  });

  it('that allow any token fit an operation that requires a token and no scope', () => {
    expect(findings(requireAuthenticated(), [])).toEqual([]);
    expect(findings(requireClaim('store', Boolean), [])).toEqual([]);
  });

  it('that allow any token do not fit an operation that requires a scope', () => {
    expect(findings(requireAuthenticated(), ['orders:read'])).toEqual(['wrong-requirement GET /v1/orders']);
  });
});

describe('guards in contractCases()', () => {
  const issuer = createTestIssuer();
  const responses = { 200: {}, '4XX': { content: { 'application/problem+json': {} } } };
  const openapi = {
    openapi: '3.1.0',
    paths: { '/me': { get: { security: [{ oauth: [] }], responses } } },
    components: { securitySchemes: { oauth: { type: 'oauth2', flows: {} } } },
  };

  async function failures(...guards: readonly RequestHandler[]): Promise<readonly string[]> {
    const app = express();
    app.use(authenticate({ ...issuer.options, unguarded: 'refuse', logger: silent }));
    app.get('/me', ...guards, (_req, res) => void res.status(200).end());
    return failuresOf(contractCases({ app, openapi, issuer }));
  }

  it('may allow any token where the operation requires no scope', async () => {
    expect(await failures(requireAuthenticated())).toEqual([]);
  });

  it('are required by the gate when it refuses what no guard has allowed', async () => {
    expect(await failures()).toContainEqual(
      expect.stringMatching(/^GET \/me fails with 500 for a token without scopes\n/),
    );
  });
});

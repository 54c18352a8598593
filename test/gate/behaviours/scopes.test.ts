import express from 'express';
import type { Express, RequestHandler } from 'express';
import request from 'supertest';
import { problemHandler, requireAuthenticated, requireClaim, requireScope } from '../../../src/gate';
import type { Middleware } from '../../../src/gate';
import { gateApp } from '../../support/gate-app';
import type { GateApp } from '../../support/gate-app';
import { token } from '../../support/issuer';
import { expectRefusal } from '../../support/refusals';

const guarded = (guard: Middleware): GateApp =>
  gateApp({ routes: (app, reach) => void app.get('/v1/orders', guard, reach) });
const withScope = (scope: unknown): string => token({ claims: { scope } });

describe('scopes: what requireScope() requires (RFC 6750 section 3.1)', () => {
  const pass: readonly [string, Middleware, string][] = [
    ['one scope', requireScope('a'), 'a'],
    ['one among others', requireScope('a'), 'b a c'],
    ['all of two, in another order', requireScope('a', 'b'), 'b c a'],
    ['all of an array', requireScope(['a', 'b']), 'a b'],
    ['the first of any', requireScope({ anyOf: ['a', 'b'] }), 'a'],
    ['the last of any', requireScope({ anyOf: ['a', 'b'] }), 'b'],
    ['a scope that is named twice', requireScope('a', 'a'), 'a'],
  ];
  it.each(pass)('passes a token with %s', async (_what, guard, scope) => {
    const through = guarded(guard);
    await through.get(withScope(scope)).expect(200);
    expect(through.reached).toEqual(['GET /v1/orders']);
  });

  const refuse: readonly [string, Middleware, string, readonly string[]][] = [
    ['another scope', requireScope('a'), 'b', ['a']],
    ['one of two', requireScope('a', 'b'), 'a', ['a', 'b']],
    ['one of an array of two', requireScope(['a', 'b']), 'b', ['a', 'b']],
    ['none of any', requireScope({ anyOf: ['a', 'b'] }), 'c', ['a', 'b']],
    ['reader where read is asked for', requireScope('read'), 'reader', ['read']],
    ['read:all where read is asked for', requireScope('read'), 'read:all', ['read']],
    ['read where read:all is asked for', requireScope('read:all'), 'read', ['read:all']],
    ['write where read is asked for', requireScope('orders:read'), 'orders:write', ['orders:read']],
    ['a scope named like a member of every object', requireScope('constructor'), 'toString', ['constructor']],
  ];
  it.each(refuse)('refuses %s with 403 and names what is required', async (_what, guard, scope, scopes) => {
    const through = guarded(guard);
    const response = await through.get(withScope(scope));
    expectRefusal(response, 'insufficient_scope', through, { scopes });
    expect(response.body.required_scopes).toEqual(scopes);
  });

  it('requires the scopes of both guards', async () => {
    const guards = [requireScope('a'), requireScope('b')];
    const through = gateApp({ routes: (app, reach) => void app.get('/v1/orders', guards, reach) });
    await through.get(withScope('a b')).expect(200);
    through.reached.length = 0;
    for (const scope of ['a', 'b', 'c']) {
      expectRefusal(await through.get(withScope(scope)), 'insufficient_scope', through, { scopes: ['a', 'b'] });
    }
  });
});

describe('scopes: guards in a row on one route', () => {
  const reach: RequestHandler = (_req, res) => void res.end();
  const skip: RequestHandler = (_req, _res, next) => next();
  const [a, z, any] = [requireScope('a'), requireScope('z'), requireScope({ anyOf: ['a', 'b'] })];
  const get =
    (...handlers: (RequestHandler | RequestHandler[])[]) =>
    (app: Express): Express =>
      app.get('/v1/orders', ...handlers);

  /** Routes, of which a token without scopes reaches the guard of `z`. */
  const rows: readonly [string, (app: Express) => unknown, readonly string[]][] = [
    ['before and after it', get(any, z, requireScope('c', 'z'), reach), ['a', 'b', 'z', 'c']],
    ['of a list', get([a, z], reach), ['a', 'z']],
    ['of all methods', (app) => app.route('/v1/orders').all(a).get(z, reach), ['a', 'z']],
    ['with one for a claim among them', get(any, requireClaim('iss', Boolean), z, reach), ['a', 'b', 'z']],
    ['with one for any token among them', get(z, requireAuthenticated(), a, reach), ['z', 'a']],
  ];
  it.each(rows)('are named together: those %s', async (_what, routes, scopes) => {
    const through = gateApp({ routes: (app) => void routes(app) });
    const held = ['a', 'b'].filter((scope) => scopes.includes(scope));
    for (const scope of ['x', held.join(' ') || 'y']) {
      expectRefusal(await through.get(withScope(scope)), 'insufficient_scope', through, { scopes });
    }
  });

  const alone: readonly [string, (app: Express) => unknown][] = [
    ['another method', (app) => app.route('/v1/orders').post(a).get(z, reach)],
    ['the other side of a handler', get(z, skip, a, reach)],
    ['another route of the path', (app) => app.get('/v1/orders', z, reach).get('/v1/orders', a, reach)],
    ['a router before the route', (app) => app.use(any).get('/v1/orders', z, reach)],
    ['the same guard on another route', (app) => app.post('/v1/orders', a, z, reach).get('/v1/orders', z, reach)],
  ];
  it.each(alone)('are not those of %s', async (_what, routes) => {
    const through = gateApp({ routes: (app) => void routes(app) });
    expectRefusal(await through.get(withScope('b')), 'insufficient_scope', through, { scopes: ['z'] });
  });

  it('are named for HEAD as for GET', async () => {
    const { app } = gateApp({ routes: get(a, z, reach) as (app: Express) => void });
    const head = request(app)
      .head('/v1/orders')
      .set('Authorization', `Bearer ${withScope('x')}`);
    expect((await head.expect(403)).headers['www-authenticate']).toContain('scope="a z"');
  });

  it('name their own scopes where they are called without a route', async () => {
    const through = gateApp({ routes: (app) => void app.use('/v1/orders', a, z, reach) });
    expectRefusal(await through.get(withScope('x')), 'insufficient_scope', through, { scopes: ['a'] });
    expectRefusal(await through.get(withScope('a')), 'insufficient_scope', through, { scopes: ['z'] });
  });
});

describe('claims guards: requireClaim()', () => {
  const isBerlin = (store: unknown): boolean => store === 'berlin-1';
  const berlin = requireClaim('store', isBerlin);

  it.each([
    ['true', isBerlin],
    ['a promise of it', (store: unknown) => Promise.resolve(isBerlin(store))],
  ])('passes a token where the test returns %s', async (_what, test) => {
    const through = guarded(requireClaim('store', test));
    await through.get(token({ claims: { store: 'berlin-1' } })).expect(200);
    await through.get(token({ claims: { store: 'paris-1' } })).expect(403);
  });

  const refused: readonly [string, ReturnType<typeof requireClaim>, Record<string, unknown>][] = [
    ['another value', berlin, { store: 'paris-1' }],
    ['no such claim', berlin, {}],
    ['a claim of another type', berlin, { store: ['berlin-1'] }],
    ['a test that throws', requireClaim('store', (value) => (value as string[]).includes('x')), {}],
    ['a test that returns something truthy', requireClaim('store', ((v: unknown) => v) as never), { store: 'x' }],
    ['a test that resolves to false', requireClaim('store', () => Promise.resolve(false)), { store: 'x' }],
    ['a test that rejects', requireClaim('store', () => Promise.reject(new Error('down'))), {}],
    ['a claim that only the prototype has', requireClaim('constructor', (value) => value !== undefined), {}],
  ];
  it.each(refused)('refuses %s with 403 access_denied', async (_what, guard, claims) => {
    const through = guarded(guard);
    const response = await through.get(token({ claims }));
    expectRefusal(response, 'claim_refused', through);
    expect(response.text).not.toContain('store');
  });

  it('logs which claim was refused', async () => {
    const through = guarded(berlin);
    await through.get(token({ claims: { store: 'paris-1' } })).expect(403);
    const privateDetail = 'the test of claim store returned false';
    expect(through.decisions.at(-1)?.error).toMatchObject({ reason: 'claim_refused', privateDetail });
  });

  it('logs what the test of a claim threw', async () => {
    const through = guarded(requireClaim('store', () => fail('the test of the app is broken')));
    await through.get(token()).expect(403);
    expect(through.decisions.at(-1)?.error).toMatchObject({
      privateDetail: 'the token has no store; the test of claim store threw Error: the test of the app is broken',
      cause: new Error('the test of the app is broken'),
    });
  });

  it('passes the request to the test', async () => {
    const guard = requireClaim('stores', (stores, req) =>
      (stores as string[]).includes(String(req.headers['x-store'])),
    );
    const raw = token({ claims: { stores: ['berlin-1'] } });
    await guarded(guard).get(raw).set('X-Store', 'berlin-1').expect(200);
    await guarded(guard).get(raw).set('X-Store', 'paris-1').expect(403);
  });
});

it.each([
  ['requireScope()', requireScope('orders:read')],
  ['requireClaim()', requireClaim('store', () => true)],
])(
  '%s without authenticate() before it is 500, names the route in the log, also with req.auth set',
  async (name, guard) => {
    const logged = jest.spyOn(console, 'error').mockImplementation();
    const reached: string[] = [];
    const app = express();
    app.use((req, _res, next) => {
      Object.assign(req, { auth: { clientId: 'forged', scopes: ['orders:read'], claims: { store: 1 } }, user: {} });
      next();
    });
    app.use(
      '/v1/orders',
      express.Router().get('/:id', guard, (_req, res) => void res.json(reached.push('reached'))),
    );
    app.use(problemHandler());

    const response = await request(app).get('/v1/orders/17?access=1').set('Authorization', `Bearer ${token()}`);
    expect([response.status, response.body.code]).toEqual([500, 'internal_error']);
    expect(response.headers['www-authenticate']).toBeUndefined();
    expect(reached).toEqual([]);
    const line = `tillgate: ${name} is on a route without authenticate() before it {"route":"GET /v1/orders/:id"}`;
    expect(logged.mock.calls).toEqual([[line]]);
    logged.mockRestore();
  },
);

/** Jest has no `fail()` any more. */
function fail(message: string): never {
  throw new Error(message);
}

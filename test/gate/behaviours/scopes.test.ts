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
    const through = gateApp({
      routes: (app, reach) => void app.get('/v1/orders', requireScope('a'), requireScope('b'), reach),
    });
    await through.get(withScope('a b')).expect(200);
    through.reached.length = 0;
    for (const scope of ['a', 'b', 'c']) {
      expectRefusal(await through.get(withScope(scope)), 'insufficient_scope', through, { scopes: ['a', 'b'] });
    }
  });
});

describe('scopes: guards in a row on one route', () => {
  /** A row of handlers, of which a token without scopes reaches the guard of `z`. */
  const reach: RequestHandler = (_req, res) => void res.end();
  const skip: RequestHandler = (_req, _res, next) => next();
  const z = requireScope('z');
  const any = requireScope({ anyOf: ['a', 'b'] });
  const rows: readonly [string, (app: Express) => void, readonly string[]][] = [
    [
      'before and after it',
      (app) => app.get('/v1/orders', any, z, requireScope('c', 'z'), reach),
      ['a', 'b', 'z', 'c'],
    ],
    ['of a list', (app) => app.get('/v1/orders', [requireScope('a'), z], reach), ['a', 'z']],
    ['of all methods', (app) => app.route('/v1/orders').all(requireScope('a')).get(z, reach), ['a', 'z']],
    [
      'with one for a claim among them',
      (app) => app.get('/v1/orders', any, requireClaim('iss', Boolean), z, reach),
      ['a', 'b', 'z'],
    ],
    [
      'with one for any token among them',
      (app) => app.get('/v1/orders', z, requireAuthenticated(), requireScope('a'), reach),
      ['z', 'a'],
    ],
  ];
  it.each(rows)('are named together: those %s', async (_what, routes, scopes) => {
    const through = gateApp({ routes });
    const held = ['a', 'b'].filter((scope) => scopes.includes(scope));
    for (const scope of ['x', held.join(' ') || 'y']) {
      expectRefusal(await through.get(withScope(scope)), 'insufficient_scope', through, { scopes });
    }
  });

  const alone: readonly [string, (app: Express) => void][] = [
    ['another method', (app) => app.route('/v1/orders').post(requireScope('a')).get(z, reach)],
    ['the other side of a handler', (app) => app.get('/v1/orders', z, skip, requireScope('a'), reach)],
    ['another route of the path', (app) => app.get('/v1/orders', z, reach).get('/v1/orders', requireScope('a'), reach)],
    ['a router before the route', (app) => app.use(any).get('/v1/orders', z, reach)],
    [
      'the same guard on another route',
      (app) => app.post('/v1/orders', requireScope('a'), z, reach).get('/v1/orders', z, reach),
    ],
  ];
  it.each(alone)('are not those of %s', async (_what, routes) => {
    const through = gateApp({ routes });
    expectRefusal(await through.get(withScope('b')), 'insufficient_scope', through, { scopes: ['z'] });
  });

  it('are named for HEAD as for GET', async () => {
    const { app } = gateApp({ routes: (own) => void own.get('/v1/orders', requireScope('a'), z, reach) });
    const { headers } = await request(app)
      .head('/v1/orders')
      .set('Authorization', `Bearer ${withScope('x')}`)
      .expect(403);
    expect(headers['www-authenticate']).toContain('scope="a z"');
  });

  it('name their own scopes where they are called without a route', async () => {
    const through = gateApp({ routes: (app) => void app.use('/v1/orders', requireScope('a'), z, reach) });
    expectRefusal(await through.get(withScope('x')), 'insufficient_scope', through, { scopes: ['a'] });
    expectRefusal(await through.get(withScope('a')), 'insufficient_scope', through, { scopes: ['z'] });
  });
});

describe('claims guards: requireClaim()', () => {
  const berlin = requireClaim('store', (value) => value === 'berlin-1');

  it('passes a token whose claim passes the test', async () => {
    await guarded(berlin)
      .get(token({ claims: { store: 'berlin-1' } }))
      .expect(200);
  });

  const refused: readonly [string, ReturnType<typeof requireClaim>, Record<string, unknown>][] = [
    ['another value', berlin, { store: 'paris-1' }],
    ['no such claim', berlin, {}],
    ['a claim of another type', berlin, { store: ['berlin-1'] }],
    ['a test that throws', requireClaim('store', (value) => (value as string[]).includes('x')), {}],
    [
      'a test that returns something true but not true',
      requireClaim('store', ((v: unknown) => v) as never),
      { store: 'x' },
    ],
    ['a test that resolves to false', requireClaim('store', () => Promise.resolve(false)), { store: 'x' }],
    ['a test that rejects', requireClaim('store', () => Promise.reject(new Error('down'))), { store: 'x' }],
    ['a claim that only the prototype has', requireClaim('constructor', (value) => value !== undefined), {}],
  ];
  it.each(refused)('refuses %s with 403 access_denied', async (_what, guard, claims) => {
    const through = guarded(guard);
    const response = await through.get(token({ claims }));
    expectRefusal(response, 'claim_refused', through);
    expect(response.text).not.toContain('store');
  });

  it('awaits a test that returns a promise', async () => {
    const through = guarded(requireClaim('store', async (store) => (await Promise.resolve('berlin-1')) === store));
    await through.get(token({ claims: { store: 'berlin-1' } })).expect(200);
    expectRefusal(await through.get(token({ claims: { store: 'paris-1' } })), 'claim_refused', {
      ...through,
      reached: through.reached.slice(1),
    });
  });

  it('logs which claim was refused', async () => {
    const through = guarded(berlin);
    await through.get(token({ claims: { store: 'paris-1' } })).expect(403);
    expect(through.decisions.at(-1)?.error).toMatchObject({ reason: 'claim_refused', privateDetail: 'claim store' });
  });

  it('logs what the test of a claim threw', async () => {
    const through = guarded(requireClaim('store', () => fail('the test of the app is broken')));
    await through.get(token()).expect(403);
    expect(through.decisions.at(-1)?.error).toMatchObject({
      privateDetail: 'the test of claim store threw',
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

describe('guards without authenticate() before them', () => {
  let logged: jest.SpyInstance;
  beforeEach(() => void (logged = jest.spyOn(console, 'error').mockImplementation()));
  afterEach(() => logged.mockRestore());

  it.each([
    ['requireScope()', requireScope('orders:read')],
    ['requireClaim()', requireClaim('store', () => true)],
  ])(
    '%s responds with 500 and names the route in the log, also with a good token and a set req.auth',
    async (name, guard) => {
      const reached: string[] = [];
      const app = express();
      app.use((req, _res, next) => {
        Object.assign(req, { auth: { clientId: 'forged', scopes: ['orders:read'], claims: { store: 1 } }, user: {} });
        next();
      });
      const router = express.Router().get('/:id', guard, (_req, res) => void res.json(reached.push('reached')));
      app.use('/v1/orders', router);
      app.use(problemHandler());

      const response = await request(app).get('/v1/orders/17?access=1').set('Authorization', `Bearer ${token()}`);
      expect({ status: response.status, body: response.body }).toEqual({
        status: 500,
        body: {
          type: 'about:blank',
          title: 'Internal Server Error',
          status: 500,
          detail: 'The request could not be processed.',
          code: 'internal_error',
        },
      });
      expect(response.headers['www-authenticate']).toBeUndefined();
      expect(reached).toEqual([]);
      const line = `tillgate: ${name} is on a route without authenticate() before it {"route":"GET /v1/orders/:id"}`;
      expect(logged.mock.calls).toEqual([[line]]);
    },
  );
});

/** Jest has no `fail()` any more. */
function fail(message: string): never {
  throw new Error(message);
}

import express from 'express';
import type { ErrorRequestHandler, RequestHandler } from 'express';
import { requireClaim, requireScope } from '../../../src/gate';
import type { AuthError } from '../../../src/gate';
import { gateApp, getFrom, testGate } from '../../support/gate-app';
import type { GateAppOptions } from '../../support/gate-app';
import { token } from '../../support/issuer';

const GOOD = token();

const SECRET = 'the customers of all stores';
const json: RequestHandler = (_req, res) => void res.json('ok');

describe("unguarded, where refusals: 'next' has refused a request and the app goes on", () => {
  const PUBLIC = ['missing_token'];
  /** As apps have it for routes that are public: a request without a token goes on. */
  const goesOn: ErrorRequestHandler = (error: AuthError, _req, res, next) => {
    if (PUBLIC.includes(error.reason)) next();
    else res.status(error.status).json({ own: error.message });
  };
  const okAnyway: ErrorRequestHandler = (_error, _req, res, _next) => void res.json({ SECRET });
  const WITHOUT_SCOPE = token({ claims: { scope: '' } });

  function appFor(options: GateAppOptions, errors: ErrorRequestHandler, ...handlers: RequestHandler[]) {
    const { gate, log } = gateApp({ refusals: 'next', ...options });
    const reached: string[] = [];
    const app = express().use(gate, errors);
    app.get('/orders', ...handlers, (_req, res) => void (reached.push('orders'), res.json({ SECRET })));
    return { get: (raw?: string) => getFrom(app.use(errors), raw, '/orders'), log, reached };
  }

  it.each([
    ['without a token', undefined],
    ['with a token', GOOD],
  ])('refuse: a route without a guard is 500 for a request %s', async (_what, raw) => {
    const { get, log } = appFor({ unguarded: 'refuse' }, goesOn);
    const response = await get(raw);
    expect([response.status, response.body]).toMatchObject([500, { code: 'internal_error' }]);
    expect(response.text).not.toContain(SECRET);
    expect(log.at('error')).toEqual([
      expect.objectContaining({
        fields: { route: 'GET /orders' },
        message: expect.stringContaining('no guard') as string,
      }),
    ]);
  });

  it.each([
    ['without a token', undefined, 'a refused request got a 2xx'],
    ['with a token', GOOD, 'a route responded without a guard'],
  ])('warn: a route without a guard is logged once for a request %s', async (_what, raw, text) => {
    const { get, log } = appFor({ unguarded: 'warn' }, goesOn);
    for (let times = 0; times < 3; times++) await get(raw).expect(200);
    const warnings = log.at('warn').map(({ fields, message }) => [fields, message]);
    expect(warnings).toEqual([[{ route: 'GET /orders' }, expect.stringMatching(`^${text}`)]]);
  });

  it.each(['refuse', 'warn'] as const)(
    '%s: a guard still refuses the request, and its handler does not run',
    async (how) => {
      const { get, log, reached } = appFor({ unguarded: how }, goesOn, requireScope('orders:read'));
      await get().expect(404);
      await get(GOOD).expect(200);
      expect([reached, log.at('warn'), log.at('error')]).toEqual([['orders'], [], []]);
    },
  );

  it.each<[string, string | undefined, readonly RequestHandler[]]>([
    ['by the gate', undefined, []],
    ['by the gate, for an expired token', token({ claims: { exp: 1 } }), [requireScope('orders:read')]],
    ['by a guard', WITHOUT_SCOPE, [requireScope('orders:read')]],
    ['by a guard after one that allowed', GOOD, [requireScope('orders:read'), requireScope('orders:cancel')]],
    ['by a claim whose test failed', GOOD, [requireClaim('sub', () => Promise.reject(new Error('down')))]],
  ])('counts a 2xx of the error handler: refused %s', async (_what, raw, guards) => {
    const refused = await appFor({ unguarded: 'refuse' }, okAnyway, ...guards).get(raw);
    expect([refused.status, refused.body]).toMatchObject([500, { code: 'internal_error' }]);
    const warned = appFor({ unguarded: 'warn' }, okAnyway, ...guards);
    await warned.get(raw).expect(200);
    expect(warned.log.at('warn').map(({ message }) => message)).toEqual([
      expect.stringMatching(/^a refused request got/),
    ]);
    expect([warned.reached, warned.log.at('error')]).toEqual([[], []]);
  });

  it.each([
    ['refuse', 'allow'],
    ['allow', 'refuse'],
  ] as const)(
    'after two gates the stricter one decides: %s before %s, of which the second refuses',
    async (one, other) => {
      const app = express().use(testGate({ unguarded: one }));
      app.use(testGate({ unguarded: other, audience: 'https://other.test', refusals: 'next' }), okAnyway);
      await getFrom(app, GOOD).expect(500);
    },
  );

  it('counts what the gate could not decide', async () => {
    const thrown = [undefined, 'route', new Error('the clock is broken')];
    for (const one of thrown) {
      const clock = (): number => {
        throw one as Error;
      };
      const { get, reached } = appFor({ unguarded: 'refuse', clock, generationClaim: false }, okAnyway);
      await get(token({ claims: { jti: String(one) } })).expect(500);
      expect(reached).toEqual([]);
    }
  });
});

describe('warnings about routes with prefixes that callers choose', () => {
  const router = express.Router().get('/orders', json).get('/items', json);

  it('writes 40 lines for a route and one for the rest, and still warns about other routes', async () => {
    const { gate, log } = gateApp({ unguarded: 'warn' });
    const app = express().use(gate).use('/shops/:shop', router).get('/later', json);
    for (let shop = 0; shop < 100; shop++) await getFrom(app, GOOD, `/shops/${shop}/orders`).expect(200);
    for (const path of ['/shops/1/items', '/later', '/shops/101/orders']) await getFrom(app, GOOD, path).expect(200);
    const routes = log.at('warn').map(({ fields }) => fields['route']);
    expect(routes).toEqual([
      ...Array.from({ length: 40 }, (_, shop) => `GET /shops/${shop}/orders`),
      ...['*/orders', 'GET /shops/1/items', 'GET /later'],
    ]);
  });

  it('does so for paths that no route declares', async () => {
    const { gate, log } = gateApp({ unguarded: 'warn' });
    const app = express().use(gate).get('/later', json).use(json);
    for (let file = 0; file < 100; file++) await getFrom(app, GOOD, `/files/${file}`).expect(200);
    await getFrom(app, GOOD, '/later').expect(200);
    const routes = log.at('warn').map(({ fields }) => fields['route']);
    expect([routes.length, ...routes.slice(-2)]).toEqual([42, '*', 'GET /later']);
  });
});

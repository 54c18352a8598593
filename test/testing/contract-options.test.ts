import express from 'express';
import { authenticate, requireScope, sendProblem, AuthError } from '../../src/gate';
import { layersOf } from '../../src/testing/audit/app-routes';
import type { Layer } from '../../src/testing/audit/app-routes';
import { contractCases, createTestIssuer, startTestIssuer } from '../../src/testing';
import { listen } from '../support/listen';
import { failuresOf } from './failures-of';
import { GUARD_BUGS } from './contract-mutants';
import { floorOf, gateOf, homemadeGate, homemadeGuard } from './homemade-gate';
import { assemble, SAMPLE_DOCUMENT as openapi, sampleParts, sendOrder, silent, tillgate } from './sample-app';
import type { SampleParts } from './sample-app';

const issuer = createTestIssuer();

/** The sample app with a gate of the issuer, and parts of its own. */
const appWith = (parts: Partial<SampleParts> = {}) => assemble({ ...sampleParts(tillgate(issuer)), ...parts });

describe('options', () => {
  // eslint-disable-next-line @typescript-eslint/no-require-imports
  const express4 = require('express-4') as typeof express;
  /** Leaves `/api/orders`: enough for an option that treats all operations alike. */
  const ofOrders = {
    openapi,
    issuer,
    depth: 'quick',
    ignore: ['/api/orders/*', '/api/whoami', '/api/health'],
  } as const;
  /** Leaves the classes that every app is tested with: enough for an option that treats all cases alike. */
  const brief = { ...ofOrders, classes: ['token', 'scope', 'document', 'routes'] } as const;

  describe('contractCases() over HTTP', () => {
    it('tests a server by its URL, with superseded tokens', async () => {
      const remote = await startTestIssuer();
      const server = await listen(assemble(sampleParts(tillgate(remote))));
      const cases = contractCases({
        url: `${server.url}/api/`,
        openapi,
        issuer: remote,
        depth: 'quick',
        classes: ['token', 'scope', 'document', 'routes', 'state'],
        ignore: ['/api/orders/*'],
      });

      expect(await failuresOf(cases)).toEqual([]);
      expect(cases.report()).toMatchObject({ notTested: [] });
      expect(cases.report().tested).toHaveLength(3);
      expect(cases.report().public).toEqual(['GET /api/health']);
      expect(cases.map(({ name }) => name).filter((name) => name.startsWith('The app'))).toEqual([]);

      await server.close();
      await remote.close();
    });

    it('reports a server that does not listen', async () => {
      const { url, close } = await listen(() => {});
      await close();
      const [first] = contractCases({ url, openapi, issuer });
      await expect(first?.run()).rejects.toThrow('ECONNREFUSED');
    });
  });

  describe('contractCases() of an app', () => {
    it('calls a function that is not an Express app, without the cases that need its routes', async () => {
      const app = appWith();
      const cases = contractCases({ app: (req, res) => void app(req, res), ...brief, generations: true });
      expect(await failuresOf(cases)).toEqual([]);
      expect(cases).toHaveLength(contractCases({ app, ...brief }).length - 3);
    });

    it('spies on the handlers of an Express 4 app too', async () => {
      const correct = sampleParts(tillgate(issuer));
      const first = (parts: SampleParts) =>
        failuresOf(contractCases({ app: assemble(parts, express4), ...brief, classes: ['token', 'scope'] }));
      expect(await first(correct)).toEqual([]);
      const calling = { getOrder: GUARD_BUGS['a guard refuses and calls next()']!(issuer).getOrder };
      const [found] = await first({ ...correct, listOrders: calling.getOrder });
      expect(found).toContain('handlers reached: expected none, got (a function without a name)');
    });

    it('can run its cases concurrently', async () => {
      const cases = contractCases({ app: appWith(), ...brief });
      await Promise.all(cases.map(({ run }) => run()));
      expect(cases.report().notTested).toEqual([]);
    });

    it('restores the handlers', async () => {
      const app = appWith();
      const before = handlersOf(layersOf(app));
      await failuresOf(contractCases({ app, ...brief, classes: ['scope', 'routes'] }));
      expect(before.length).toBeGreaterThan(6);
      expect(handlersOf(layersOf(app))).toEqual(before);
    });

    it('allows functions of beforeGuard to run before a guard, by name or by reference', async () => {
      function loadTable(_req: unknown, _res: unknown, next: () => void): void {
        next();
      }
      const app = appWith({ getOrder: [loadTable, ...sampleParts(tillgate(issuer)).getOrder] });

      const ignore = ['/api/orders', '/api/whoami', '/api/health'];
      const order = { ...brief, app, classes: ['scope'], ignore } as const;
      expect(await failuresOf(contractCases(order))).toEqual([]);
      const strict = { ...order, strict: true };
      const found = await failuresOf(contractCases(strict));
      expect(new Set(found.map((text) => text.split('\n  ')[1]))).toEqual(
        new Set(['called before the guard: expected nothing, got loadTable']),
      );
      expect(await failuresOf(contractCases({ ...strict, beforeGuard: ['loadTable'] }))).toEqual([]);
      expect(await failuresOf(contractCases({ ...strict, beforeGuard: [loadTable] }))).toEqual([]);
    });

    it('skips ignored paths', () => {
      const cases = contractCases({ app: appWith(), openapi, issuer, ignore: ['/api/orders', '/api/orders/*'] });
      const called = cases.map(({ name }) => name.split(' ')[1]).filter((path) => path?.startsWith('/'));
      expect(new Set(called)).toEqual(new Set(['/api/health', '/api/whoami']));
    });
  });

  describe('what the document lacks', () => {
    const bare = {
      openapi: '3.1.0',
      paths: { '/api/orders': { get: { security: [{ oauth2: ['orders:read'] }], responses: { 200: {} } } } },
      components: { securitySchemes: { oauth2: { type: 'oauth2' } } },
    };
    const options = { ...brief, openapi: bare, classes: ['token', 'scope', 'document'] } as const;

    it('is told once for an operation, and fails no case', async () => {
      const app = appWith();
      const cases = contractCases({ app: (req, res) => void app(req, res), ...options });
      expect(await failuresOf(cases)).toEqual([]);
      expect(cases.report().documentation).toEqual(['GET /api/orders: 400, 401, 403 are not documented']);
    });

    it('fails the case of its operation with strict', async () => {
      const app = appWith();
      const cases = contractCases({ app: (req, res) => void app(req, res), ...options, strict: true });
      const found = await failuresOf(cases);
      expect(found).toHaveLength(1);
      expect(found[0]).toContain('GET /api/orders responds as documented\n  documented status: expected 200, got 401');
    });
  });

  describe('an API that hides what a caller may not see', () => {
    const hiding: Partial<SampleParts> = {
      first(_req, res, next) {
        const end = res.end.bind(res) as (chunk?: unknown) => typeof res;
        res.end = ((chunk?: unknown) => {
          if (res.statusCode === 403) res.statusCode = 404;
          return end(chunk);
        }) as typeof res.end;
        next();
      },
    };

    it('passes with hides', async () => {
      expect(await failuresOf(contractCases({ app: appWith(hiding), ...ofOrders, hides: true }))).toEqual([]);
    });

    it('fails without hides', async () => {
      const [found] = await failuresOf(contractCases({ app: appWith(hiding), ...brief }), 1);
      expect(found).toContain('refuses a token without scopes\n  status: expected 403, got 404');
    });
  });

  it('quick cases try the tokens that any gate refuses once per gate, full ones on every operation', async () => {
    const count = async (depth: 'quick' | 'full'): Promise<number> => {
      let made = 0;
      const token: typeof issuer.token = (options) =>
        issuer.token(((made += Number(options?.expired === true)), options));
      const own = { ...issuer, token };
      await failuresOf(contractCases({ app: appWith(), openapi, issuer: own, depth, classes: ['token'] }));
      return made;
    };
    expect([await count('quick'), await count('full')]).toEqual([1, 5]);
  });

  it('has one case for each class of an operation, whatever the depth', () => {
    for (const depth of ['quick', 'full'] as const) {
      const cases = contractCases({ app: appWith(), openapi, issuer, depth });
      const names = cases.flatMap(({ operation, class: what }) => (operation ? `${operation} ${what}` : []));
      expect(names).toHaveLength(new Set(names).size);
      // Five protected operations with fourteen classes each, and a public one.
      expect(names).toHaveLength(5 * 14 + 2);
    }
  });

  it('lists every requirement of a case that is not met', async () => {
    const listOrders: SampleParts['listOrders'] = [(_req, res) => void res.json([])];
    const cases = contractCases({ app: appWith({ listOrders }), ...brief });
    const scope = cases.find((one) => one.operation === 'GET /api/orders' && one.class === 'scope');
    await expect(scope?.run()).rejects.toThrow(
      [
        'GET /api/orders accepts and refuses tokens by their scopes',
        'GET /api/orders refuses a token without scopes: status: expected 403, got 200',
        'GET /api/orders refuses a token with every scope except orders:read: status: expected 403, got 200',
        'GET /api/orders refuses a token with names similar to orders:read: status: expected 403, got 200',
      ].join('\n  '),
    );
  });

  describe('an API that learns late of a change', () => {
    /** Only every second request sees the floor of its client. */
    function late() {
      const asked = new Map<string, number>();
      function readFloor(clientId: string): number {
        asked.set(clientId, (asked.get(clientId) ?? 0) + 1);
        return asked.get(clientId)! % 2 === 1 ? 0 : floorOf(issuer, clientId);
      }
      const app = assemble(sampleParts({ gate: gateOf(issuer, readFloor), guard: homemadeGuard }));
      return { app, ...brief, classes: ['token'], generations: true } as const;
    }

    it('passes within propagationMs', async () => {
      const cases = contractCases({ ...late(), propagationMs: 5_000 });
      expect(await failuresOf(cases)).toEqual([]);
    });

    it('fails without propagationMs', async () => {
      const cases = contractCases(late());
      expect((await failuresOf(cases, 1))[0]).toContain('refuses a superseded token\n  status: expected 401, got 200');
    });
  });

  describe('operations of other kinds', () => {
    const problem = { content: { 'application/problem+json': { schema: { type: 'object' } } } };
    const oneOperation = (method: string, operation: object) => ({
      openapi: '3.0.3',
      paths: { '/orders': { [method]: { responses: { 200: {}, '4XX': problem }, ...operation } } },
      components: { securitySchemes: { key: { type: 'apiKey' }, oauth2: { type: 'oauth2' } } },
    });

    it('have refusals without a body when they are HEAD', async () => {
      const app = express();
      app.use(authenticate({ ...issuer.options, logger: silent }));
      app.head('/orders', requireScope('orders:read'), (_req, res) => void res.end());
      const head = oneOperation('head', { security: [{ oauth2: ['orders:read'] }] });
      expect(await failuresOf(contractCases({ app, openapi: head, issuer }))).toEqual([]);
    });

    it('have no cases when an API key protects them', () => {
      const keyed = oneOperation('get', { security: [{ key: [] }] });
      const cases = contractCases({ url: 'http://127.0.0.1:1', openapi: keyed, issuer });
      expect(cases).toHaveLength(0);
      expect(cases.report().notTested).toEqual([
        'GET /orders: no requirement of its security is met by a bearer token; test it by hand',
      ]);
    });

    it('are called with their optional scopes too', async () => {
      const optional = oneOperation('get', { security: [{ oauth2: ['a'] }], 'x-optional-scopes': ['b'] });
      const cases = contractCases({ url: 'http://127.0.0.1:1', openapi: optional, issuer, classes: ['scope'] });
      const names = (await failuresOf(cases))
        .map((text) => text.split('\n', 1)[0])
        .filter((name) => name?.includes('accepts a'));
      const accepts = 'GET /orders accepts a token with only';
      expect(names).toEqual([`${accepts} a`, `${accepts} a and b`]);
    });
  });

  it('reasons in 401s may be named or hidden, as long as all 401s do the same', async () => {
    const opaque = assemble(sampleParts({ gate: homemadeGate(issuer), guard: homemadeGuard }));
    for (const app of [opaque, appWith()]) expect(await failuresOf(contractCases({ app, ...brief }))).toEqual([]);
  });

  describe('report()', () => {
    it('lists what has not been called yet', () => {
      const { notTested } = contractCases({ app: appWith(), openapi, issuer }).report();
      expect(notTested).toContain('DELETE /api/orders/{id}: no case has called it; run its cases');
      expect(notTested).toHaveLength(5);
    });

    it('lists operations that responded to good tokens with something else than a 2xx', async () => {
      const [guard] = sampleParts(tillgate(issuer)).getOrder;
      const app = appWith({
        getOrder: [
          guard!,
          (req, res, next) => {
            if (req.params['id'] === 'o-7') sendOrder(req, res, next);
            else sendProblem(req, res, { status: 404, code: 'not_found' });
          },
        ],
      });
      const options = { app, openapi, issuer, depth: 'quick', classes: ['scope', 'document'] } as const;
      const missing = contractCases(options);
      const named = contractCases({ ...options, requests: { getOrder: { path: { id: 'o-7' } } } });

      expect(await failuresOf(missing)).toEqual([]);
      const why = 'GET /api/orders/{id}: good tokens got 404; give values that exist in "requests"';
      expect(missing.report().notTested).toEqual([why]);
      expect(String(missing.report())).toContain(`Operations not tested: 1\n  ${why}`);
      expect(await failuresOf(named)).toEqual([]);
      expect(named.report().notTested).toEqual([]);
    });
  });

  /** Every handler of every route. */
  function handlersOf(layers: readonly Layer[] = []): readonly object[] {
    return layers.flatMap(({ route, handle }) => route?.stack.map((one) => one.handle) ?? handlersOf(layersOf(handle)));
  }
});

/** The classes of cases of which an API that trusts another issuer fails some. */
const UNTIL_TRUSTED = ['token', 'scope', 'document', 'routes'] as const;

function refuseWith429(res: Parameters<SampleParts['first']>[1]): void {
  const { headers, status, reason } = new AuthError('too_many_unknown_keys');
  res.status(status).set(headers).json({ code: reason });
}

describe('an API that does not trust the issuer', () => {
  it('is reported once and clearly, before any other case', async () => {
    const stranger = createTestIssuer({ audience: 'https://elsewhere.test' });
    const [first, ...others] = await failuresOf(
      contractCases({ app: appWith(), openapi, issuer: stranger, classes: UNTIL_TRUSTED }),
    );
    expect(first).toBe(
      'The API accepts tokens of the test issuer\n' +
        "  None of this issuer's tokens is accepted: GET /api/orders responded 401 wrong_audience, and so did 4 more. " +
        'Give authenticate() the options of the issuer, or configure its issuer, audience and keys.',
    );
    expect(others.filter((message) => message.includes('None of this'))).toEqual([]);
  });

  it.each<[string, SampleParts['first']]>([
    ['needs no token by mistake', (req, res, next) => (req.path === '/api/orders' ? void res.json([]) : next())],
    ['does not exist', (req, res, next) => (req.path === '/api/orders' ? void res.sendStatus(404) : next())],
  ])('is reported also where one operation %s', async (_what, first) => {
    const stranger = createTestIssuer();
    const [found] = await failuresOf(contractCases({ app: appWith({ first }), openapi, issuer: stranger }), 1);
    expect(found).toContain('GET /api/orders/{id} responded 401 unknown_key, and so did 2 more.');
  });

  it('is reported when its keys cannot be fetched', async () => {
    const gate = authenticate({ ...issuer.options, keys: undefined, issuer: 'http://127.0.0.1:1', logger: silent });
    const [found] = await failuresOf(contractCases({ app: appWith({ gate }), openapi, issuer }), 1);
    await gate.close();
    expect(found).toContain("None of this issuer's tokens is accepted: GET /api/orders responded 503 keys_unavailable");
  });

  it('is reported when its gate cannot ask for the key', async () => {
    const first: SampleParts['first'] = (req, res, next) => {
      if (req.headers.authorization === undefined) next();
      else refuseWith429(res);
    };
    const [found, ...others] = await failuresOf(
      contractCases({ app: appWith({ first }), openapi, issuer, classes: UNTIL_TRUSTED }),
    );
    expect(found).toContain('GET /api/orders responded 429 too_many_unknown_keys, and so did 4 more.');
    expect(others.join()).not.toContain('rate limit');
  });

  it('is not reported when one operation accepts a token', async () => {
    const listOrders: SampleParts['listOrders'] = [(_req, res) => void res.sendStatus(401)];
    const [first] = await failuresOf(contractCases({ app: appWith({ listOrders }), openapi, issuer }), 1);
    expect(first).toContain('GET /api/orders refuses');
  });
});

describe('contractCases() with wrong options', () => {
  const good = { app: appWith(), openapi, issuer };
  it.each([
    ['neither app nor url', { app: undefined }, 'give either app or url'],
    ['both', { url: 'http://127.0.0.1' }, 'give either app or url'],
    ['another scheme', { app: undefined, url: 'ftp://127.0.0.1' }, 'option "url" must be an http: or https:'],
    ['an app that is not a function', { app: 'app' }, 'option "app" must be a function'],
    ['no document', { openapi: undefined }, 'option "openapi" must be a file or a parsed document'],
    ['no issuer', { issuer: undefined }, 'option "issuer" must be a test issuer'],
    ['a misspelt option', { request: {} }, 'did you mean "requests"'],
    ['requests as a string', { requests: 'a' }, 'option "requests" must be an object'],
    ['a request for an unknown operation', { requests: { getOrders: {} } }, 'did you mean "getOrder"'],
    ['a string to ignore', { ignore: '/a' }, 'option "ignore" must be an array of paths'],
    ['an empty document', { openapi: {} }, 'expected an OpenAPI 3 document'],
  ])('throws immediately for %s', (_what, wrong, message) => {
    expect(() => contractCases({ ...good, ...wrong } as never)).toThrow(message);
  });
});

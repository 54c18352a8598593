import { once } from 'node:events';
import { connect, createServer } from 'node:http2';
import type { Http2ServerRequest, Http2ServerResponse, IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import express from 'express';
import type { ErrorRequestHandler, RequestHandler } from 'express';
import { requirementOf } from '../../../src/gate/express/guard';
import { isGranted } from '../../../src/gate/verifier/scope-requirement';
import {
  requireAuthenticated,
  requireClaim,
  requireScope,
  defineScopes,
  authenticate,
  authOf,
  problemHandler,
} from '../../../src/gate';
import type * as tillgate from '../../../src/gate';
import type { Middleware } from '../../../src/gate';
import { gateApp, getFrom, testGate } from '../../support/gate-app';
import { token } from '../../support/issuer';
import { expectRefusal } from '../../support/refusals';
import { anotherCopy } from '../../support/modules';

describe('guards', () => {
  describe('requireScope(): its arguments', () => {
    it('does not follow an array that is changed afterwards', () => {
      const all = ['a', 'b'];
      const any = [...all];
      const guards = [requireScope(all), requireScope({ anyOf: any })];
      all.length = any.length = 0;
      expect(guards.map(requirementOf)).toEqual([{ allOf: ['a', 'b'] }, { anyOf: ['a', 'b'] }]);
    });

    const least = 'requireScope(): expected at least one scope, got';
    const grammar = 'requireScope(): expected a scope without blanks, quotes and backslashes, got';
    it.each<[string, readonly unknown[], string]>([
      ['nothing', [], `${least} an empty array`],
      ['an empty array', [[]], `${least} an empty array`],
      ['an empty anyOf', [{ anyOf: [] }], `${least} an empty array`],
      [
        'anyOf that is not an array',
        [{ anyOf: 'a' }],
        'requireScope(): anyOf must be an array: expected at least one scope, got "a"',
      ],
      ['no anyOf', [{}], 'requireScope(): expected { anyOf: [...] }'],
      ['allOf', [{ allOf: ['a'] }], 'requireScope(): expected { anyOf: [...] }'],
      ['anyOf next to something else', [{ anyOf: ['a'], allOf: ['b'] }], 'requireScope(): expected { anyOf: [...] }'],
      ['undefined', [undefined], `${grammar} undefined`],
      ['null', [null], `${grammar} null`],
      ['a function', [() => ['a']], `${grammar} a function`],
      ['a number', [17], `${grammar} 17`],
      ['an empty string', [''], `${grammar} ""`],
      ['two scopes in one string', ['a b'], `${grammar} "a b"; write each scope as a string of its own`],
      ['a quote', ['a"b'], `${grammar} "a\\"b"`],
      ['a backslash', ['a\\b'], `${grammar} "a\\\\b"`],
      ['a letter beyond ASCII', ['größe'], `${grammar} "größe"`],
      ['a line break', ['a\nb'], `${grammar} "a\\nb"`],
      ['an array among strings', ['a', ['b']], `${grammar} an array of 1`],
      ['a string after an array', [['a'], 'b'], `${grammar} an array of 1`],
      ['a string after anyOf', [{ anyOf: ['a'] }, 'b'], `${grammar} an object`],
    ])('refuses %s at construction', (_what, args, message) => {
      const make = requireScope as (...scopes: readonly unknown[]) => unknown;
      expect(() => make(...args)).toThrow(new TypeError(message));
    });
  });

  describe('requireClaim(): its arguments', () => {
    it.each<[string, readonly unknown[], string]>([
      ['no name', [undefined, () => true], 'requireClaim(): expected the name of a claim, got undefined'],
      ['an empty name', ['', () => true], 'requireClaim(): expected the name of a claim, got ""'],
      ['no test', ['store'], 'requireClaim(): expected a test function, got undefined'],
      ['a value in place of a test', ['store', 'berlin-1'], 'requireClaim(): expected a test function, got "berlin-1"'],
    ])('refuses %s at construction', (_what, args, message) => {
      const make = requireClaim as (...args: readonly unknown[]) => unknown;
      expect(() => make(...args)).toThrow(new TypeError(message));
    });
  });

  it.each<[string, Middleware, object]>([
    ['requireScope', requireScope('a'), { allOf: ['a'] }],
    ['requireScope', requireScope('a', 'b', 'a'), { allOf: ['a', 'b'] }],
    ['requireScope', requireScope(Object.freeze(['a', 'b'])), { allOf: ['a', 'b'] }],
    ['requireScope', requireScope(Object.freeze({ anyOf: Object.freeze(['a', 'b']) })), { anyOf: ['a', 'b'] }],
    ['requireClaim', requireClaim('store', () => true), { claim: 'store' }],
    ['requireAuthenticated', requireAuthenticated(), {}],
  ])('%s() is a named function that shows what it asks for, in another copy too: %#', (name, guard, requirement) => {
    expect(guard.name).toBe(name);
    const shown = requirementOf(guard) as object;
    expect(Reflect.get(guard, Symbol.for('tillgate.guard'))).toBe(shown);
    expect(shown).toEqual(requirement);
    expect([shown, ...Object.values(shown)].every(Object.isFrozen)).toBe(true);
  });

  it.each<[string, (value: unknown) => unknown, string | undefined]>([
    ['true', () => true, undefined],
    ['false', () => false, 'the token has no store'],
    ['null', () => null, 'the token has no store; the test of claim store returned null, not true'],
    ['nothing', () => undefined, 'the token has no store; the test of claim store returned nothing'],
    ['a number', () => 1, 'the token has no store; the test of claim store returned 1, not true'],
  ])('requireClaim() decides immediately about a test that returns %s', async (_what, test, detail) => {
    const guard = requireClaim('store', test as () => boolean);
    const decided: string[] = [];
    const through = gateApp({
      unguarded: 'allow',
      routes: (app) =>
        void app.get('/v1/orders', (req, res) => {
          guard(req, res, () => void decided.push('passed'));
          decided.push('returned');
          if (!res.headersSent) res.end();
        }),
    });
    await through.get(token());
    expect(decided).toEqual(detail === undefined ? ['passed', 'returned'] : ['returned']);
    expect(through.decisions.at(-1)?.error?.privateDetail).toBe(detail);
  });

  it.each([1, 2, 16, 17, 1_000])(
    'isGranted() finds each of %d scopes, and nothing that only looks like one',
    (count) => {
      const granted = Array.from({ length: count }, (_, index) => `orders:${index}`);
      for (const scope of granted) expect(isGranted(granted, scope)).toBe(true);
      for (const scope of ['orders', 'orders:', `orders:${count}`, 'orders:0 ', 'ORDERS:0', '']) {
        expect(isGranted(granted, scope)).toBe(false);
      }
    },
  );
});

const shop = defineScopes(['orders:read', 'orders:write', 'constructor']);

describe('defineScopes()', () => {
  it('lists the scopes, each once, frozen', () => {
    expect(defineScopes(['a', 'b', 'a'] as string[]).scopes).toEqual(['a', 'b']);
    expect(Object.isFrozen(shop.scopes)).toBe(true);
  });

  it('does not follow an array that is changed afterwards', () => {
    const list = ['a'];
    const { requireScope: guardFor } = defineScopes(list);
    list.push('b');
    expect(() => guardFor('b')).toThrow(TypeError);
  });

  it('makes the guards of requireScope()', () => {
    const made = [
      shop.requireScope('orders:read', 'orders:write'),
      shop.requireScope(['constructor']),
      shop.requireScope({ anyOf: ['orders:read', 'orders:write'] }),
    ];
    expect(made.map(requirementOf)).toEqual([
      { allOf: ['orders:read', 'orders:write'] },
      { allOf: ['constructor'] },
      { anyOf: ['orders:read', 'orders:write'] },
    ]);
  });

  it('its guards allow and refuse requests', async () => {
    const through = gateApp({
      routes: (app, reach) => void app.get('/v1/orders', shop.requireScope('orders:read'), reach),
    });
    await through.get(token({ claims: { scope: 'orders:read' } })).expect(200);
    through.reached.length = 0;
    const refused = await through.get(token({ claims: { scope: 'orders:write' } }));
    expectRefusal(refused, 'insufficient_scope', through, { scopes: ['orders:read'] });
  });

  const unknown = 'is not one of the defined scopes;';
  const meant = `"ordrs:read" ${unknown} did you mean "orders:read"?`;
  const grammar = 'expected a scope without blanks, quotes and backslashes, got';
  const two = 'write each scope as a string of its own';
  it.each<[string, readonly unknown[], string]>([
    ['a misspelt scope', ['ordrs:read'], meant],
    ['another case', ['Orders:read'], `"Orders:read" ${unknown} did you mean "orders:read"?`],
    ['the second of two', ['orders:write', 'ordrs:read'], meant],
    ['one in an array', [['ordrs:read']], meant],
    ['one of anyOf', [{ anyOf: ['orders:write', 'ordrs:read'] }], meant],
    ['a name of every object', ['toString'], `"toString" ${unknown} known are orders:read, orders:write, constructor`],
    ['nothing', [], 'expected at least one scope, got an empty array'],
    ['two scopes in one string', ['orders:read items:read'], `${grammar} "orders:read items:read"; ${two}`],
  ])('its requireScope() refuses %s at construction', (_what, args, message) => {
    const make = shop.requireScope as (...given: readonly unknown[]) => unknown;
    expect(() => make(...args)).toThrow(new TypeError(`requireScope(): ${message}`));
  });

  it.each<[string, unknown, string]>([
    ['nothing', undefined, 'expected at least one scope, got undefined'],
    ['an empty array', [], 'expected at least one scope, got an empty array'],
    ['a string', 'orders:read', 'expected at least one scope, got "orders:read"'],
    ['a number', ['a', 17], `${grammar} 17`],
    ['two scopes in one string', ['a b'], `${grammar} "a b"; ${two}`],
  ])('refuses %s', (_what, scopes, message) => {
    expect(() => defineScopes(scopes as string[])).toThrow(new TypeError(`defineScopes(): ${message}`));
  });
});

interface Received {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A server of node:http2 without a framework: the middlewares in turn, then the handler. */
async function http2Server(...middlewares: readonly Middleware[]) {
  const reached: unknown[] = [];
  function run(req: Http2ServerRequest, res: Http2ServerResponse, [first, ...rest] = middlewares): void {
    if (first) return first(req, res, (error) => (error ? res.destroy() : run(req, res, rest)));
    reached.push(authOf(req));
    res.end('reached');
  }
  const server = createServer((req, res) => run(req, res));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return {
    reached,
    async get(authorization?: string): Promise<Received> {
      const stream = session.request({ ':path': '/orders', ...(authorization !== undefined && { authorization }) });
      const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders];
      return { status: Number(headers[':status']), headers, body: await text(stream) };
    },
    close() {
      session.destroy();
      return new Promise<void>((closed) => server.close(() => closed()));
    },
  };
}

describe('a server of node:http2', () => {
  const seen: unknown[] = [];
  const gate = testGate({ unguarded: 'refuse' });
  const guards = [
    requireScope('orders:read'),
    requireClaim('sub', (value, req) => seen.push([value, req.auth?.clientId]) > 0),
  ];

  let close = (): Promise<void> => Promise.resolve();
  afterEach(() => close());

  async function open(...middlewares: readonly Middleware[]) {
    const server = await http2Server(...middlewares);
    close = () => server.close();
    return server;
  }

  it('accepts a good token; authOf() is its caller', async () => {
    const server = await open(gate, ...guards);
    const { status, body } = await server.get(`Bearer ${token()}`);
    expect([status, body]).toEqual([200, 'reached']);
    expect(server.reached).toEqual([expect.objectContaining({ clientId: 'pos-17', scopes: expect.any(Array) })]);
    expect(seen).toEqual([['pos-17', 'pos-17']]);
  });

  it.each([
    ['no token', undefined, 401, 'missing_token', 'Bearer realm="api"'],
    ['a token without the scope', `Bearer ${token({ claims: { scope: 'x' } })}`, 403, 'insufficient_scope', undefined],
    ['an expired token', `Bearer ${token({ claims: { exp: 1 } })}`, 401, 'expired', undefined],
  ])('refuses %s', async (_what, authorization, status, code, challenge) => {
    const server = await open(gate, ...guards);
    const response = await server.get(authorization);
    expect([response.status, codeOf(response)]).toEqual([status, code]);
    if (challenge !== undefined) expect(response.headers['www-authenticate']).toBe(challenge);
    expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
    expect(server.reached).toEqual([]);
  });

  it('replaces a response that no guard allowed by 500', async () => {
    const server = await open(gate);
    const response = await server.get(`Bearer ${token()}`);
    expect([response.status, codeOf(response)]).toEqual([500, 'internal_error']);
  });
});

function codeOf({ body }: Received): string {
  return (JSON.parse(body) as { code: string }).code;
}

describe('mistakes of the app', () => {
  it.each<[string, unknown, string]>([
    ['requireScope', requireScope, "requireScope('orders:read')"],
    ['requireScope', defineScopes(['a']).requireScope, "requireScope('orders:read')"],
    ['requireClaim', requireClaim, "requireClaim('tenant', (value) => value === 'shop')"],
    ['requireAuthenticated', requireAuthenticated, 'requireAuthenticated()'],
    ['authenticate', authenticate, 'authenticate(...)'],
    ['problemHandler', problemHandler, 'problemHandler(...)'],
  ])('%s registered without being called says how it is written', async (name, handler, call) => {
    const errors: unknown[] = [];
    const onError: ErrorRequestHandler = (error: Error, _req, res, _next) => {
      errors.push(error.message);
      res.sendStatus(500);
    };
    const app = express().get('/', handler as RequestHandler, (_req, res) => void res.json('reached'));
    await getFrom(app.use(onError)).expect(500);
    expect(errors).toEqual([`${name} is registered as a middleware without being called: write ${call}`]);
  });

  it('a guard after the gate of another copy of the package says so, and allows nothing', async () => {
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- loads it anew
    const { requireScope: other } = anotherCopy(() => require('../../../src/gate') as typeof tillgate);
    const entries: unknown[] = [];
    const error = jest.spyOn(console, 'error').mockImplementation((entry) => void entries.push(entry));
    const reached: string[] = [];
    const app = gateApp({
      routes: (app) => app.get('/v1/orders', other('orders:read'), () => void reached.push('handler')),
    });
    await app.get(token()).expect(500);
    error.mockRestore();
    const why = 'requireScope() is after an authenticate() by another copy of tillgate, which it does not trust';
    expect(entries).toEqual([
      expect.stringContaining(`${why}: \`npm ls tillgate\` lists them {"route":"GET /v1/orders","other":"`),
    ]);
    expect(reached).toEqual([]);
  });

  it.each([
    ['Orders:Read', 'needs orders:read, has Orders:Read; scopes are compared by case, and Orders:Read is another one'],
    ['a orders:write b', 'needs orders:read, has orders:write and 2 more'],
    ['', 'needs orders:read, has none'],
  ])('a refusal for scopes says to operators what a token with %j has', async (scope, detail) => {
    const through = gateApp();
    await through.get(token({ claims: { scope } })).expect(403);
    expect(through.log.at('info').map(({ fields }) => fields['detail'])).toEqual([detail]);
  });
});

describe('authOf()', () => {
  it('knows a request only by the gate that accepted it, not by what is assigned to it', () => {
    expect(authOf({ auth: { clientId: 'forged' } })).toBeUndefined();
  });
});

import type { Request } from 'express';
import express from 'express';
import request from 'supertest';
import { authenticate, defineScopes, requireAuthenticated, requireClaim, requireScope } from '../../src';
import type { GateOptions, Middleware } from '../../src';
import { requirementOf } from '../../src/express/guard';
import { describeRoutes } from '../../src/testing/audit/app-routes';
import { gateApp } from '../support/gate-app';
import type { GateApp } from '../support/gate-app';
import { token, AUDIENCE, ISSUER, NOW_MS } from '../support/issuer';
import { jwks, testKey } from '../support/keys';
import { recordingLogger } from '../support/log';
import { expectRefusal } from '../support/refusals';

/** The scopes of the tools that a JSON-RPC body calls, of one message or of several. */
function scopesOfTools({ body }: Request): string[] {
  const tools = new Map([
    ['orders', ['orders:read']],
    ['refund', ['orders:read', 'payments:refund']],
  ]);
  const messages = [body as unknown].flat() as { method: string; params: { name: string } }[];
  return messages.flatMap(({ method, params }) => (method === 'tools/call' ? tools.get(params.name)! : []));
}

const call = (...names: string[]): object[] => names.map((name) => ({ method: 'tools/call', params: { name } }));

function withGuards(...guards: Middleware[]): GateApp {
  return gateApp({ routes: (app, reach) => void app.post('/v1/mcp', ...guards, reach) });
}

function send(through: GateApp, scope: string, body: object) {
  return through.post(token({ claims: { scope } }), '/v1/mcp').send(body);
}

describe('requireScope() with a function', () => {
  it.each<[string, object]>([
    ['orders:read', call('orders')[0]!],
    ['orders:read payments:refund', call('refund', 'orders')],
    ['', { method: 'tools/list' }],
    ['', []],
  ])('allows "%s" for %j', async (scope, body) => {
    await send(withGuards(requireScope(scopesOfTools)), scope, body).expect(200);
  });

  it('names all scopes of the request in one challenge, each once', async () => {
    const through = withGuards(requireScope(scopesOfTools));
    const scopes = ['orders:read', 'payments:refund'];
    expectRefusal(await send(through, 'x', call('orders', 'refund')), 'insufficient_scope', through, { scopes });
    const one = await send(through, 'orders:read', call('orders')[0]!);
    expect(one.status).toBe(200);
  });

  it('names those of its row too, whichever guard refuses', async () => {
    const scopes = ['tools', 'orders:read'];
    for (const granted of ['x', 'tools', 'orders:read']) {
      const through = withGuards(requireScope('tools'), requireAuthenticated(), requireScope(scopesOfTools));
      expectRefusal(await send(through, granted, call('orders')), 'insufficient_scope', through, { scopes });
    }
  });

  it('leaves a guard before it alone where its own scopes cannot be read', async () => {
    const through = withGuards(requireScope('tools'), requireScope(scopesOfTools));
    expectRefusal(await send(through, 'x', call('drop')), 'insufficient_scope', through, { scopes: ['tools'] });
  });

  it.each<[string, (req: Request) => unknown]>([
    ['throws', () => (undefined as unknown as { name: string }).name],
    ['returns nothing', () => undefined],
    ['returns a scope instead of an array', () => 'orders:read'],
    ['returns true', () => true],
    ['returns a promise', () => Promise.resolve([])],
    ['returns an object without members', () => ({})],
    ['returns undefined among scopes', () => ['orders:read', undefined]],
    ['returns two scopes in one string', () => ['orders:read orders:write']],
  ])('refuses every token when it %s', async (_how, scopesFor) => {
    const through = withGuards(requireScope(scopesFor as (req: Request) => string[]));
    expectRefusal(await send(through, 'orders:read', call('orders')), 'claim_refused', through);
    const { privateDetail, cause } = through.decisions.at(-1)?.error ?? {};
    expect([privateDetail, cause]).toEqual([
      'the function of requireScope() returned no scopes',
      expect.any(TypeError),
    ]);
  });

  it('leaves no rejection of an async function that nothing handles', async () => {
    const unhandled = jest.fn();
    process.on('unhandledRejection', unhandled);
    const through = withGuards(requireScope((() => Promise.reject(new Error('db'))) as unknown as () => string[]));
    expectRefusal(await send(through, 'orders:read', call('orders')), 'claim_refused', through);
    await new Promise(setImmediate);
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  it('is not asked about a request without a token', async () => {
    const asked: unknown[] = [];
    const guard = requireScope((req) => {
      asked.push(req);
      return [];
    });
    const through = gateApp({
      optional: true,
      challengeScopes: ['tools'],
      routes: (app, reach) => void app.post('/v1/mcp', guard, reach),
    });
    const response = await through.post(undefined, '/v1/mcp').send({});
    expectRefusal(response, 'missing_token', through, { challengeScopes: ['tools'] });
    expect(asked).toEqual([]);
  });

  it('knows no scopes but the defined ones', async () => {
    const shop = defineScopes(['orders:read', 'orders:write']);
    const guard = shop.requireScope((req: Request) => (req.body as { scopes: 'orders:read'[] }).scopes);
    await send(withGuards(guard), 'orders:read', { scopes: ['orders:read'] }).expect(200);
    const through = withGuards(guard);
    expectRefusal(await send(through, 'ordrs:read', { scopes: ['ordrs:read'] }), 'claim_refused', through);
  });

  it('takes nothing besides it', () => {
    const make = requireScope as (...args: unknown[]) => unknown;
    const message = 'requireScope(): expected a scope without blanks, quotes and backslashes, got a function';
    expect(() => make(() => [], 'a')).toThrow(new TypeError(message));
  });

  it('is shown to route audits as what depends on the request', () => {
    const guard = requireScope(() => []);
    expect([guard.name, Object.keys(requirementOf(guard) ?? {})]).toEqual(['requireScope', ['scopesFor']]);
    const { app } = withGuards(requireScope('tools'), guard);
    expect(describeRoutes(app).routes).toEqual([
      expect.objectContaining({
        path: '/v1/mcp',
        requires: [['tools']],
        further: ['scopes that depend on the request'],
      }),
    ]);
  });
});

describe('the scope of a 401', () => {
  function appWith(options: Pick<GateOptions, 'challengeScopes' | 'refusals'>, ...guards: Middleware[]) {
    const gate = authenticate({
      ...{ issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()), clock: () => NOW_MS, logger: recordingLogger() },
      ...options,
    });
    return express().post('/mcp', gate, express.json(), ...guards, (_req, res) => void res.json('reached'));
  }

  async function challenge(app: express.Express, raw?: string): Promise<unknown> {
    const sent = request(app).post('/mcp').send(call('orders'));
    const response = await (raw === undefined ? sent : sent.set('Authorization', `Bearer ${raw}`));
    const header = response.headers['www-authenticate'] as string;
    const body = response.body as { required_scopes?: unknown };
    return [response.status, /scope="([^"]*)"/.exec(header)?.[1], body.required_scopes];
  }

  it.each<[string, Middleware[], string | undefined]>([
    ['its guard requires', [requireScope('tools')], 'tools'],
    ['all guards of the row require', [requireScope('tools'), requireScope({ anyOf: ['a', 'tools'] })], 'tools a'],
    ['is known before the body', [requireScope('tools'), requireScope(scopesOfTools)], 'tools'],
    ['guards without scopes require: nothing', [requireAuthenticated(), requireClaim('a', () => true)], undefined],
    ['is required where no guard is: nothing', [], undefined],
  ])('is what %s, where the gate is on the route', async (_what, guards, scope) => {
    const app = appWith({}, ...guards);
    expect(await challenge(app)).toEqual([401, scope, undefined]);
    expect(await challenge(app, token({ claims: { exp: 1 } }))).toEqual([401, scope, undefined]);
  });

  it('is not in a 400', async () => {
    expect(await challenge(appWith({}, requireScope('tools')), 'a b')).toEqual([400, undefined, undefined]);
  });

  it('is challengeScopes where the gate has them', async () => {
    const app = appWith({ challengeScopes: ['tools', 'orders:read'] }, requireScope('tools'));
    expect(await challenge(app)).toEqual([401, 'tools orders:read', undefined]);
  });

  it('is in the headers of the error that the app gets', async () => {
    const app = appWith({ refusals: 'next' }, requireScope('tools'));
    const headers: unknown[] = [];
    app.use((error: { headers: unknown }, _req: Request, res: express.Response, _next: unknown) => {
      headers.push(error.headers);
      res.sendStatus(401);
    });
    await request(app).post('/mcp').expect(401);
    expect(headers).toEqual([{ 'WWW-Authenticate': 'Bearer realm="api", scope="tools"' }]);
  });
});

import type { ServerResponse } from 'node:http';
import express from 'express';
import type { ErrorRequestHandler } from 'express';
import request from 'supertest';
import { AuthError, requireAuthenticated, requireClaim, requireScope } from '../../../src/gate/index';
import type { AuthenticateOptions, Middleware } from '../../../src/gate/index';
import { memoryGenerations } from '../../../src/gate/generation/memory';
import { gateApp, testGate } from '../../support/gate-app';
import { ISSUER, token } from '../../support/issuer';
import { recordingLogger } from '../../support/log';
import type { GateRequest } from '../../../src/gate/express/request-state';
import { presentTo, refusalSender, sendRefusal } from '../../../src/gate/express/respond';

/** An app whose error handler shows what it gets. */
function appOf(options: Partial<AuthenticateOptions>, guard: Middleware = requireScope('orders:read')) {
  const errors: unknown[] = [];
  const handle: ErrorRequestHandler = (error: AuthError, _req, res, _next) => {
    errors.push(error);
    res.status(error.status).set(error.headers).json({ own: error.message });
  };
  const shown = { realm: 'shop', resource: 'https://api.test', exposeReasons: true };
  const gate = testGate({ ...shown, refusals: 'next', ...options });
  const app = express()
    .use(gate)
    .get('/orders', guard, (_req, res) => void res.json('ok'))
    .use(handle);
  const get = (raw?: string) => {
    const test = request(app).get('/orders');
    return raw === undefined ? test : test.set('Authorization', `Bearer ${raw}`);
  };
  return { get, errors };
}

describe("refusals: 'next'", () => {
  it.each([
    ['without a token', undefined, 'missing_token', 401],
    ['with an expired token', token({ claims: { exp: 1 } }), 'expired', 401],
    ['refused by a guard', token({ claims: { scope: '' } }), 'insufficient_scope', 403],
  ])('hands the error of a request %s to the app, with the headers of the gate', async (_what, raw, reason, status) => {
    const { get, errors } = appOf({});
    const response = await get(raw);
    const same = await gateApp({ realm: 'shop', resource: 'https://api.test', exposeReasons: true }).get(raw);
    const [error] = errors as AuthError[];
    expect(error).toBeInstanceOf(AuthError);
    expect(error).toMatchObject({ reason, status });
    expect([response.status, response.headers['www-authenticate']]).toEqual([status, same.headers['www-authenticate']]);
    expect(response.body).toEqual({ own: (same.body as { detail: string }).detail });
  });

  it('hands over what operators need to know, next to what callers may', async () => {
    const { get, errors } = appOf({ exposeReasons: false });
    await get(token({ claims: { client_id: '' } }));
    await get(token({ claims: { scope: '' } }));
    const claim = requireClaim('store', () => {
      throw new RangeError('broken test');
    });
    const other = appOf({}, claim);
    await other.get(token());
    expect(errors).toMatchObject([
      {
        reason: 'invalid_claims',
        privateDetail: 'the client id is empty',
        message: 'The access token is not valid.',
        code: 'invalid_token',
      },
      { reason: 'insufficient_scope', requiredScopes: ['orders:read'] },
    ]);
    expect(other.errors).toMatchObject([
      { privateDetail: 'the test of claim store threw', cause: { message: 'broken test' } },
    ]);
  });

  it('hands over when to retry after an outage', async () => {
    const fetch = (): Promise<Response> => Promise.reject(new Error('down'));
    const schedule = () => ({ cancel() {} });
    const { get, errors } = appOf({ keys: undefined, jwksUri: 'https://login.test/jwks', fetch, schedule });
    const { status, headers } = await get(token());
    const [error] = errors as AuthError[];
    expect([status, headers['retry-after']]).toEqual([503, String(error?.retryAfterSeconds)]);
    expect(error).toMatchObject({ reason: 'keys_unavailable', headers: { 'Retry-After': headers['retry-after'] } });
  });

  it('hands over what is not a refusal as it is, and logs it', async () => {
    const log = recordingLogger();
    const failure = new RangeError('the clock is broken');
    const clock = (): number => {
      throw failure;
    };
    const errors: unknown[] = [];
    const { gate } = gateApp({ refusals: 'next', generationClaim: false, clock, logger: log });
    const handle: ErrorRequestHandler = (error, _req, res, _next) => {
      errors.push(error);
      res.status(500).end();
    };
    const app = express().use(gate).use(handle);
    await request(app).get('/').set('Authorization', `Bearer ${token()}`).expect(500);
    expect(errors).toEqual([failure]);
    expect(log.entries).toEqual([
      { level: 'error', fields: { error: failure.stack }, message: 'a request could not be decided' },
    ]);
  });

  it('gets from problemHandler() the response that the gate itself gives', async () => {
    const options = { realm: 'shop', exposeReasons: true, problemTypes: 'https://api.test/problems/' } as const;
    const [byGate, byHandler] = [gateApp(options), gateApp({ ...options, refusals: 'next' })];
    for (const raw of [undefined, token({ claims: { exp: 1 } }), token({ claims: { scope: '' } })]) {
      const [expected, got] = [await byGate.get(raw), await byHandler.get(raw)];
      expect([got.status, got.body, got.headers['www-authenticate']]).toEqual([
        expected.status,
        expected.body,
        expected.headers['www-authenticate'],
      ]);
      expect((got.body as { type: string }).type).toMatch(/^https:\/\/api\.test\/problems\/[a-z_]+$/);
    }
  });
});

describe('requireAuthenticated()', () => {
  it('allows every accepted token, and no request without one', async () => {
    const guarded = (options = {}) =>
      gateApp({
        unguarded: 'refuse',
        ...options,
        routes: (app, reach) => void app.get('/v1/orders', requireAuthenticated(), reach),
      });
    await guarded()
      .get(token({ claims: { scope: '' } }))
      .expect(200);
    await guarded({ optional: true }).get().expect(401);
  });

  it('is a guard to route audits, in another copy of this package too', () => {
    const requirements = [requireAuthenticated(), requireScope('a'), requireClaim('store', () => true)].map(
      (guard): unknown => Reflect.get(guard, Symbol.for('tillgate.guard')),
    );
    expect(requirements).toEqual([{}, { allOf: ['a'] }, { claim: 'store' }]);
    expect(requirements.every(Object.isFrozen)).toBe(true);
  });
});

describe('req.auth', () => {
  it.each([
    ['a request without a token after an optional gate', { optional: true }, undefined, null],
    ['an accepted token', {}, token(), 'pos-17'],
  ])('is the gate’s for %s, whatever an earlier middleware has assigned', async (_what, options, raw, expected) => {
    const { gate } = gateApp(options);
    const app = express()
      .use((req, _res, next) => {
        req.auth = { clientId: 'forged' } as typeof req.auth;
        next();
      })
      .use(gate, (req, res) => void res.json({ caller: req.auth?.clientId ?? null, own: Object.hasOwn(req, 'auth') }));
    const sent = request(app).get('/');
    const response = await (raw === undefined ? sent : sent.set('Authorization', `Bearer ${raw}`));
    expect(response.body).toEqual({ caller: expected, own: true });
  });

  it('is absent from requests of the same process that no gate has accepted', async () => {
    const { gate } = gateApp();
    const app = express()
      .get('/open', (req, res) => void res.json('auth' in req))
      .use(gate);
    await request(app).get('/closed').set('Authorization', `Bearer ${token()}`);
    expect((await request(app).get('/open')).body).toBe(false);
  });

  it('is what a later middleware assigns, and guards do not read it', async () => {
    const { gate } = gateApp();
    const app = express().use(
      gate,
      (req, _res, next) => {
        req.auth = { ...req.auth!, scopes: ['admin'] };
        next();
      },
      requireScope('admin'),
      (_req, res) => void res.json('ok'),
    );
    expect((await request(app).get('/').set('Authorization', `Bearer ${token()}`)).status).toBe(403);
  });
});

describe("generationClaim: 'iat' without a generationSource", () => {
  it('says nothing where there is a source', async () => {
    const { gate, log } = gateApp({ generationClaim: 'iat', generationSource: memoryGenerations() });
    await gate.ready();
    expect(log.entries).toEqual([]);
    await gate.close();
  });

  it('warns once at construction: it refuses nothing', async () => {
    const through = gateApp({ generationClaim: 'iat' });
    await through.get(token()).expect(200);
    await through.get(token()).expect(200);
    expect(through.log.entries.filter(({ level }) => level === 'warn')).toEqual([
      {
        level: 'warn',
        fields: { issuer: ISSUER },
        message:
          "generationClaim is 'iat', and there is no generationSource to compare it with: tokens are accepted until they expire",
      },
    ]);
  });
});

describe('prepared refusals', () => {
  const PRESENTATION = { realm: 'shop', exposeReasons: true, resourceMetadata: 'https://api.test/metadata' };

  async function responseOf(handler: (req: GateRequest, res: ServerResponse) => void) {
    const { status, text, headers } = await request(handler).get('/');
    const { date, ...rest } = headers as Record<string, string>;
    expect(date).toBeDefined();
    return { status, headers: rest, text };
  }

  /** Responses of one gate to refusals in turn; `id` is the request's. */
  async function prepared(errors: readonly AuthError[], id?: string) {
    const send = refusalSender(PRESENTATION);
    const got = [];
    for (const error of errors) got.push(await responseOf((req, res) => send(Object.assign(req, { id }), res, error)));
    return got;
  }

  /** The response to a refusal where nothing is prepared. */
  function fresh(error: AuthError, id?: string) {
    return responseOf((req, res) => {
      sendRefusal(Object.assign(req, { id }), res, presentTo(req, error, PRESENTATION));
    });
  }

  const insufficient = (requiredScopes: readonly string[]): AuthError =>
    new AuthError('insufficient_scope', { requiredScopes });

  describe('refusalSender()', () => {
    it.each<[string, () => AuthError]>([
      ['without scopes', () => new AuthError('expired')],
      ['with scopes', () => insufficient(Object.freeze(['orders:read', 'orders:write']))],
      ['of too many unknown keys', () => new AuthError('too_many_unknown_keys', { retryAfterSeconds: 7 })],
      ['of an outage', () => new AuthError('keys_unavailable', { retryAfterSeconds: 7 })],
    ])(
      'sends a refusal %s the second time byte for byte as the first, with and without an id',
      async (_which, make) => {
        const error = make();
        const expected = await fresh(error);
        expect(await prepared([error, error])).toEqual([expected, expected]);
        const withId = await fresh(error, 'request-7 \u00e9');
        expect(await prepared([error, error], 'request-7 \u00e9')).toEqual([withId, withId]);
        expect(JSON.parse(withId.text)).toMatchObject({ request_id: 'request-7 \u00e9' });
      },
    );

    it('tells refusals apart by reason, scopes and time to wait', async () => {
      const scopes = Object.freeze(['orders:read']);
      const errors = [
        new AuthError('expired'),
        new AuthError('superseded'),
        insufficient(scopes),
        insufficient(Object.freeze(['items:read'])),
        new AuthError('expired', { requiredScopes: scopes }),
        insufficient(scopes),
        new AuthError('insufficient_scope'),
        new AuthError('keys_unavailable', { retryAfterSeconds: 7 }),
        new AuthError('keys_unavailable', { retryAfterSeconds: 8 }),
        new AuthError('too_many_unknown_keys', { retryAfterSeconds: 7 }),
        new AuthError('too_many_unknown_keys', { retryAfterSeconds: 8 }),
      ];
      expect(await prepared(errors)).toEqual(await Promise.all(errors.map((error) => fresh(error))));
    });

    it('reads a list of scopes anew each time where it can change', async () => {
      const scopes = ['orders:read'];
      const send = refusalSender(PRESENTATION);
      const challenge = async (): Promise<string | undefined> =>
        (await responseOf((req, res) => send(req, res, insufficient(scopes)))).headers['www-authenticate'];
      expect(await challenge()).toContain('scope="orders:read"');
      scopes.push('orders:write');
      expect(await challenge()).toContain('scope="orders:read orders:write"');
    });
  });
});

import type { ServerResponse } from 'node:http';
import express from 'express';
import type { ErrorRequestHandler, RequestHandler } from 'express';
import request from 'supertest';
import { AuthError, requireAuthenticated, requireClaim, requireScope } from '../../../src/gate/index';
import type { AuthenticateOptions, Middleware } from '../../../src/gate/index';
import { gateApp, getFrom, testGate } from '../../support/gate-app';
import { token } from '../../support/issuer';
import { recordingLogger } from '../../support/log';
import type { GateRequest } from '../../../src/gate/express/request-state';
import { presentTo, refusalSender, sendRefusal } from '../../../src/gate/express/respond';

const EXPIRED = token({ claims: { exp: 1 } });
const WITHOUT_SCOPE = token({ claims: { scope: '' } });

describe("refusals: 'next'", () => {
  const SHOWN = { realm: 'shop', resource: 'https://api.test', exposeReasons: true };

  /** An app whose error handler shows what it gets. */
  function appOf(options: Partial<AuthenticateOptions>, guard: Middleware = requireScope('orders:read')) {
    const errors: AuthError[] = [];
    const handle: ErrorRequestHandler = (error: AuthError, _req, res, _next) => {
      errors.push(error);
      res.status(error.status).set(error.headers).json({ own: error.message });
    };
    const app = express().use(testGate({ ...SHOWN, refusals: 'next', ...options }));
    app.get('/orders', guard, (_req, res) => void res.json('ok')).use(handle);
    return { get: (raw?: string) => getFrom(app, raw, '/orders'), errors };
  }

  it.each([
    ['without a token', undefined, 'missing_token', 401],
    ['with an expired token', EXPIRED, 'expired', 401],
    ['refused by a guard', WITHOUT_SCOPE, 'insufficient_scope', 403],
  ])('hands the error of a request %s to the app, with the headers of the gate', async (_what, raw, reason, status) => {
    const { get, errors } = appOf({});
    const response = await get(raw);
    const same = await gateApp(SHOWN).get(raw);
    const [error] = errors;
    expect(error).toBeInstanceOf(AuthError);
    expect(error).toMatchObject({ reason, status });
    expect([response.status, response.headers['www-authenticate']]).toEqual([status, same.headers['www-authenticate']]);
    expect(response.body).toEqual({ own: (same.body as { detail: string }).detail });
  });

  it('hands over what operators need to know, next to what callers may', async () => {
    const { get, errors } = appOf({ exposeReasons: false });
    await get(token({ claims: { client_id: '' } }));
    await get(WITHOUT_SCOPE);
    const callers = { message: 'The access token is not valid.', code: 'invalid_token' };
    expect(errors).toMatchObject([
      { reason: 'invalid_claims', privateDetail: 'the client id is empty', ...callers },
      { reason: 'insufficient_scope', requiredScopes: ['orders:read'] },
    ]);
    const broken = requireClaim('store', () => {
      throw new RangeError('broken test');
    });
    const other = appOf({}, broken);
    await other.get(token());
    const cause = { message: 'broken test' };
    const privateDetail = 'the token has no store; the test of claim store threw RangeError: broken test';
    expect(other.errors).toMatchObject([{ privateDetail, cause }]);
  });

  it('hands over when to retry after an outage', async () => {
    const fetch = (): Promise<Response> => Promise.reject(new Error('down'));
    const schedule = () => ({ cancel() {} });
    const { get, errors } = appOf({ keys: undefined, jwksUri: 'https://login.test/jwks', fetch, schedule });
    const { status, headers } = await get(token());
    expect([status, headers['retry-after']]).toEqual([503, String(errors[0]?.retryAfterSeconds)]);
    expect(errors[0]).toMatchObject({ reason: 'keys_unavailable', headers: { 'Retry-After': headers['retry-after'] } });
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
    await getFrom(express().use(gate).use(handle), token()).expect(500);
    expect(errors).toEqual([failure]);
    const fields = { error: failure.stack };
    expect(log.entries).toEqual([{ level: 'error', fields, message: 'a request could not be decided' }]);
  });

  it('gets from problemHandler() the response that the gate itself gives', async () => {
    const options = { realm: 'shop', exposeReasons: true, problemTypes: 'https://api.test/problems/' } as const;
    const [byGate, byHandler] = [gateApp(options), gateApp({ ...options, refusals: 'next' })];
    for (const raw of [undefined, EXPIRED, WITHOUT_SCOPE]) {
      const [expected, got] = [await byGate.get(raw), await byHandler.get(raw)];
      const challenge = expected.headers['www-authenticate'] as string;
      expect([got.status, got.body, got.headers['www-authenticate']]).toEqual([
        expected.status,
        expected.body,
        challenge,
      ]);
      expect((got.body as { type: string }).type).toMatch(/^https:\/\/api\.test\/problems\/[a-z_]+$/);
    }
  });
});

it('requireAuthenticated() allows every accepted token, and no request without one', async () => {
  const guarded = (options = {}) =>
    gateApp({
      unguarded: 'refuse',
      ...options,
      routes: (app, reach) => void app.get('/v1/orders', requireAuthenticated(), reach),
    });
  await guarded().get(WITHOUT_SCOPE).expect(200);
  await guarded({ optional: true }).get().expect(401);
});

describe('req.auth', () => {
  const assign: RequestHandler = (req, _res, next) => {
    req.auth = { clientId: 'forged', scopes: ['admin'] } as unknown as typeof req.auth;
    next();
  };

  it.each([
    ['a request without a token after an optional gate', { optional: true }, undefined, null],
    ['an accepted token', {}, token(), 'pos-17'],
  ])('is the gate’s for %s, whatever an earlier middleware has assigned', async (_what, options, raw, caller) => {
    const app = express().use(assign, gateApp(options).gate, (req, res) => {
      res.json({ caller: req.auth?.clientId ?? null, own: Object.hasOwn(req, 'auth') });
    });
    expect((await getFrom(app, raw)).body).toEqual({ caller, own: true });
  });

  it('is absent from requests of the same process that no gate has accepted', async () => {
    const app = express().get('/open', (req, res) => void res.json('auth' in req));
    app.use(gateApp().gate);
    await getFrom(app, token(), '/closed');
    expect((await getFrom(app, undefined, '/open')).body).toBe(false);
  });

  it('is what a later middleware assigns, and guards do not read it', async () => {
    const app = express().use(gateApp().gate, assign, requireScope('admin'), (_req, res) => void res.json('ok'));
    await getFrom(app, token()).expect(403);
  });
});

describe('refusalSender()', () => {
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

  const insufficient = (...requiredScopes: string[]): AuthError =>
    new AuthError('insufficient_scope', { requiredScopes: Object.freeze(requiredScopes) });
  const later = (reason: 'keys_unavailable' | 'too_many_unknown_keys', retryAfterSeconds: number): AuthError =>
    new AuthError(reason, { retryAfterSeconds });

  it.each<[string, AuthError]>([
    ['without scopes', new AuthError('expired')],
    ['with scopes', insufficient('orders:read', 'orders:write')],
    ['of too many unknown keys', later('too_many_unknown_keys', 7)],
    ['of an outage', later('keys_unavailable', 7)],
  ])('sends a refusal %s the second time byte for byte as the first, with and without an id', async (_which, error) => {
    const expected = await fresh(error);
    expect(await prepared([error, error])).toEqual([expected, expected]);
    const withId = await fresh(error, 'request-7 \u00e9');
    expect(await prepared([error, error], 'request-7 \u00e9')).toEqual([withId, withId]);
    expect(JSON.parse(withId.text)).toMatchObject({ request_id: 'request-7 \u00e9' });
  });

  it('tells refusals apart by reason, scopes and time to wait', async () => {
    const read = insufficient('orders:read');
    const errors = [
      new AuthError('expired'),
      new AuthError('superseded'),
      read,
      insufficient('items:read'),
      new AuthError('expired', { requiredScopes: read.requiredScopes! }),
      new AuthError('insufficient_scope', { requiredScopes: read.requiredScopes! }),
      new AuthError('insufficient_scope'),
      later('keys_unavailable', 7),
      later('keys_unavailable', 8),
      later('too_many_unknown_keys', 7),
      later('too_many_unknown_keys', 8),
    ];
    expect(await prepared(errors)).toEqual(await Promise.all(errors.map((error) => fresh(error))));
  });

  it('reads a list of scopes anew each time where it can change', async () => {
    const requiredScopes = ['orders:read'];
    const send = refusalSender(PRESENTATION);
    const refuse = (req: GateRequest, res: ServerResponse): void =>
      send(req, res, new AuthError('insufficient_scope', { requiredScopes }));
    const challenge = async (): Promise<unknown> => (await responseOf(refuse)).headers['www-authenticate'];
    expect(await challenge()).toContain('scope="orders:read"');
    requiredScopes.push('orders:write');
    expect(await challenge()).toContain('scope="orders:read orders:write"');
  });
});

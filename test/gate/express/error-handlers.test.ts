import { inspect } from 'node:util';
import express from 'express';
import type { ErrorRequestHandler, RequestHandler } from 'express';
import request from 'supertest';
import { AuthError, requireAuthenticated, requireClaim, requireScope } from '../../../src/gate/index';
import { getFrom, testGate } from '../../support/gate-app';
import { ISSUER, token } from '../../support/issuer';
import { recordingLogger } from '../../support/log';

/*
 * Error handlers as apps have them, none of which knows AuthError, get what a gate with `refusals: 'next'` and its guards refuse.
 */

/** An error as handlers see it that look for members. */
type Loose = Error & {
  readonly status?: number;
  readonly statusCode?: number;
  readonly expose?: boolean;
  readonly headers?: Record<string, string>;
};

/** A class of the app, into which its handler converts every error. */
class ApiError extends Error {
  constructor(
    readonly statusCode: number,
    message: string,
  ) {
    super(message);
  }
}

const isHttpError = (error: Loose): boolean =>
  error instanceof Error &&
  typeof error.expose === 'boolean' &&
  typeof error.statusCode === 'number' &&
  error.status === error.statusCode;

const HANDLERS: Record<string, ErrorRequestHandler | undefined> = {
  'by status': (error: Loose, _req, res, _next) => {
    res.status(error.status ?? 500).json({ message: error.message });
  },
  'by statusCode, converted into a class of the app': (error: Loose, _req, res, _next) => {
    const own = error instanceof ApiError ? error : new ApiError(error.statusCode ?? 500, error.message);
    res.status(own.statusCode).send({ code: own.statusCode, message: own.message });
  },
  'by the members of http-errors': (error: Loose, _req, res, _next) => {
    if (!isHttpError(error)) return void res.sendStatus(500);
    res.status(error.statusCode ?? 500).set(error.headers ?? {});
    res.json({ error: error.expose ? error.message : 'Error' });
  },
  'as Boom converts errors, which adds members': (error: Loose & Record<string, unknown>, _req, res, _next) => {
    const statusCode = error.statusCode ?? 500;
    Object.assign(error, { isBoom: true, isServer: statusCode >= 500, output: { statusCode } });
    res.status(statusCode).json({ statusCode, message: error.message });
  },
  'as next to express-validator, with a list of errors': (error: Loose, _req, res, _next) => {
    const errors = [{ type: 'auth', msg: error.message, ...error }];
    res.status(error.status ?? 500).json({ errors });
  },
  'with everything that the error has': (error: Loose, _req, res, _next) => {
    const { message, stack } = error;
    res.status(error.status ?? 500).json({ message, stack, error, text: inspect(error), also: String(error) });
  },
  "of Express's own": undefined,
};

function appOf(handle: ErrorRequestHandler | undefined, guard = requireScope('orders:read')) {
  const gate = testGate({ exposeReasons: false, refusals: 'next' });
  const handler = jest.fn((_req, res: express.Response) => void res.json('ok'));
  const app = express().use(gate).get('/', guard, handler);
  if (handle) app.use(handle);
  return { get: (raw?: string) => getFrom(app, raw), handler };
}

const REFUSED: readonly [string, string | undefined, number][] = [
  ['no token', undefined, 401],
  ['an expired token', token({ claims: { exp: 1 } }), 401],
  ['a token of another audience', token({ claims: { aud: 'https://other.test' } }), 401],
  ['a token without the scope', token({ claims: { scope: '' } }), 403],
];

describe.each(Object.entries(HANDLERS))('an error handler %s', (_name, handle) => {
  it.each(REFUSED)('responds to %s with the status of the gate and exposes no reason', async (_what, raw, status) => {
    const { get, handler } = appOf(handle);
    const response = await get(raw);
    expect(response.status).toBe(status);
    expect(response.text).not.toMatch(/expired|wrong_audience|other\.test|exp was/);
    expect(handler).not.toHaveBeenCalled();
    // Express's own shows the stack.
    if (handle) expect(response.text).not.toMatch(/node_modules|\.ts:/);
    else expect(response.headers['www-authenticate']).toMatch(/^Bearer realm="api"/);
  });
});

describe('a test of requireClaim() that throws an AuthError', () => {
  const guard = requireClaim('sub', async (sub) => {
    await Promise.resolve();
    if (sub !== 'user-17') throw new AuthError('inactive', { privateDetail: 'no such user' });
    return true;
  });
  const synchronous = requireClaim('sub', () => {
    throw new AuthError('inactive');
  });
  const gone = token({ claims: { sub: 'user-18' } });

  it('decides the response: 401 for a user who no longer exists', async () => {
    const { get, handler } = appOf(HANDLERS['by status'], guard);
    await get(gone).expect(401, { message: 'The access token is not valid.' });
    expect(handler).not.toHaveBeenCalled();
    await get(token({ claims: { sub: 'user-17' } })).expect(200);
    await appOf(HANDLERS['by status'], synchronous).get(token()).expect(401);
  });

  it('has the challenge of the gate, and the log names the client', async () => {
    const log = recordingLogger();
    const gate = testGate({ logger: log, realm: 'shop', exposeReasons: true });
    const response = await getFrom(express().use(gate).get('/', guard), gone).expect(401);
    expect(response.headers['www-authenticate']).toMatch(/^Bearer realm="shop", error="invalid_token", /);
    expect(response.body).toMatchObject({ status: 401, code: 'inactive' });
    expect(log.entries.map(({ fields }) => fields)).toContainEqual(
      expect.objectContaining({ reason: 'inactive', issuer: ISSUER, detail: 'no such user' }),
    );
  });
});

describe('guards as apps write them (docs/migration.md)', () => {
  const gate = testGate({ optional: true });
  const guarded = (...scopes: readonly string[]) => [
    gate,
    scopes.length > 0 ? requireScope(...scopes) : requireAuthenticated(),
  ];

  it('makes gate and guard one function, also next to a public route', async () => {
    const app = express()
      .get('/orders', ...guarded('orders:read'), (_req, res) => void res.json('orders'))
      .get('/me', ...guarded(), (req, res) => void res.json(req.auth?.clientId))
      .get('/menu', gate, (req, res) => void res.json(req.auth ? 'yours' : 'public'));
    const without = token({ claims: { scope: '' } });
    const rows: readonly [string, string | undefined, number, string?][] = [
      ['/orders', undefined, 401],
      ['/orders', without, 403],
      ['/orders', token(), 200],
      ['/me', undefined, 401],
      ['/me', without, 200, 'pos-17'],
      ['/menu', undefined, 200, 'public'],
      ['/menu', without, 200, 'yours'],
      ['/menu', `${without}x`, 401],
    ];
    for (const [path, raw, status, body] of rows) {
      const response = await getFrom(app, raw, path);
      expect([path, response.status]).toEqual([path, status]);
      if (body !== undefined) expect(response.body).toBe(body);
    }
  });

  it('accepts another scheme by a middleware that rewrites the header', async () => {
    const acceptTokenScheme: RequestHandler = (req, _res, next) => {
      const { authorization } = req.headers;
      if (authorization) req.headers.authorization = authorization.replace(/^Token /, 'Bearer ');
      next();
    };
    const app = express().get('/', acceptTokenScheme, ...guarded(), (_req, res) => void res.json('ok'));
    const get = (authorization: string) => request(app).get('/').set('Authorization', authorization);
    await get(`Token ${token()}`).expect(200);
    await get(`Token Bearer ${token()}`).expect(400);
    await get(`Basic ${token()}`).expect(401);
  });
});

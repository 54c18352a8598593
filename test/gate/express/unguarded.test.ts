import { Readable } from 'node:stream';
import { once } from 'node:events';
import express from 'express';
import type { RequestHandler } from 'express';
import request from 'supertest';
import { requireClaim, requireScope } from '../../../src/gate';
import { gateApp, getFrom, testGate, withToken } from '../../support/gate-app';
import type { GateApp, GateAppOptions } from '../../support/gate-app';
import { token } from '../../support/issuer';

const GOOD = token();

const SECRET = 'the customers of all stores';
const json: RequestHandler = (_req, res) => void res.json('ok');
const later: RequestHandler = (_req, _res, next) => void setImmediate(next);

function gateFor(handler: RequestHandler, options: GateAppOptions = {}): GateApp {
  return gateApp({ unguarded: 'refuse', routes: (app) => void app.all('/v1/:resource', handler), ...options });
}

/** Every way in which a handler can respond with 200 with the secret. */
const handlers: readonly [string, RequestHandler][] = [
  ['res.json', (_req, res) => void res.json({ SECRET })],
  ['res.send', (_req, res) => void res.send(SECRET)],
  ['res.send of bytes', (_req, res) => void res.send(Buffer.from(SECRET))],
  ['res.status and res.json', (_req, res) => void res.status(201).location(encodeURI(SECRET)).json({ SECRET })],
  ['res.end', (_req, res) => void res.end(SECRET)],
  ['res.end with a callback', (_req, res) => void res.end(SECRET, () => {})],
  ['res.write and res.end', (_req, res) => void (res.write(SECRET) && res.write(SECRET), res.end(SECRET))],
  ['res.writeHead and res.end', (_req, res) => void res.writeHead(200, { 'x-secret': SECRET }).end(SECRET)],
  ['res.writeHead with a phrase', (_req, res) => void res.writeHead(200, SECRET, { 'x-a': 'b' }).end(SECRET)],
  ['res.flushHeaders', (_req, res) => (res.flushHeaders(), void res.end(SECRET))],
  ['a stream', (_req, res) => void Readable.from([SECRET, SECRET]).pipe(res)],
  ['a stream that comes later', (_req, res) => void setImmediate(() => Readable.from([SECRET]).pipe(res))],
  ['res.sendFile', (_req, res) => void res.sendFile(__filename)],
  ['res.attachment', (_req, res) => void res.attachment(`${SECRET}.csv`).send(SECRET)],
  ['a cookie and an ETag', (_req, res) => void res.cookie('secret', SECRET).set('ETag', `"${SECRET}"`).send(SECRET)],
];

describe('unguarded: refuse', () => {
  it.each(handlers)('puts a 500 in the place of a 2xx that no guard allowed: %s', async (_how, handler) => {
    const through = gateFor(handler);
    const response = await through.get(GOOD, '/v1/customers');
    expect(response.status).toBe(500);
    expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
    expect(response.headers['cache-control']).toBe('no-store');
    expect(response.body).toEqual({
      type: 'about:blank',
      title: 'Internal Server Error',
      status: 500,
      detail: 'The request could not be processed.',
      code: 'internal_error',
    });
    const told = decodeURIComponent(JSON.stringify([response.headers, response.text]));
    expect(told).not.toContain(SECRET);
    for (const name of ['set-cookie', 'etag', 'last-modified', 'location', 'content-disposition', 'x-secret']) {
      expect(response.headers[name]).toBeUndefined();
    }
    expect(through.log.at('error')).toEqual([
      {
        level: 'error',
        fields: { route: 'GET /v1/:resource' },
        message: 'a response was replaced by 500: no guard (requireScope() and the like) allowed this request',
      },
    ]);
  });

  it.each([
    ['204', (_req, res) => void res.status(204).end()],
    ['sendStatus(202)', (_req, res) => void res.sendStatus(202)],
    ['206', (_req, res) => void res.status(206).send(SECRET)],
  ] as [string, RequestHandler][])('counts as 2xx: %s', async (_what, handler) => {
    await gateFor(handler).get(GOOD, '/v1/customers').expect(500);
  });

  it.each(handlers)('leaves a guarded response unchanged: %s', async (_how, handler) => {
    const plain = gateApp({ unguarded: 'allow', routes: (app) => void app.get('/v1/orders', handler) });
    const guarded = gateApp({
      unguarded: 'refuse',
      routes: (app) => void app.get('/v1/orders', requireScope('orders:read'), handler),
    });
    const [expected, got] = [await plain.get(GOOD), await guarded.get(GOOD)];
    expect([got.status, got.text]).toEqual([expected.status, expected.text]);
    const { date: _a, ...expectedHeaders } = expected.headers as Record<string, string>;
    const { date: _b, ...gotHeaders } = got.headers as Record<string, string>;
    expect(gotHeaders).toEqual(expectedHeaders);
    expect(guarded.log.entries).toEqual([]);
  });

  it.each([
    ['requireClaim() counts as a guard', requireClaim('client_id', (value) => value === 'pos-17'), 200],
    ['a guard that refused does not stand for one that allowed', requireScope('other:read'), 403],
  ])('%s', async (_what, guard, status) => {
    const routes: GateAppOptions['routes'] = (app) => void app.get('/v1/orders', guard, json);
    await gateApp({ unguarded: 'refuse', routes }).get(GOOD).expect(status);
  });

  it.each([300, 400, 404, 409, 422, 500, 503])('leaves an unguarded response of %d unchanged', async (status) => {
    const through = gateFor((_req, res) => void res.status(status).json({ why: 'x' }));
    const response = await through.get(GOOD, '/v1/customers');
    expect([response.status, response.body]).toEqual([status, { why: 'x' }]);
    expect(through.log.entries).toEqual([]);
  });

  it('lets a redirect, an unknown route and an error of the handler pass as they are', async () => {
    const statusOf = async (handler: RequestHandler, path = '/v1/customers'): Promise<number> =>
      (await gateFor(handler).get(GOOD, path).redirects(0)).status;
    expect(await statusOf((_req, res) => void res.redirect('/elsewhere'))).toBe(302);
    expect(await statusOf((_req, _res, next) => void next())).toBe(404);
    expect(await statusOf(() => Promise.reject(Object.assign(new Error('x'), { status: 415 })))).toBe(415);
  });

  it('replaces the response to HEAD too', async () => {
    await withToken(request(gateFor(json).app).head('/v1/customers'), GOOD).expect(500);
  });

  it('holds back what an anonymous request would get, where it was chosen besides optional', async () => {
    await gateFor(json, { optional: true }).get(undefined, '/v1/customers').expect(500);
  });
});

describe('a guard after the handler', () => {
  const late: NonNullable<GateAppOptions['routes']> = (app) =>
    void app.get('/v1/customers', json, requireScope('orders:read')).get('/v1/orders', json);

  it.each<[GateAppOptions['unguarded'], number, string, string]>([
    [
      'refuse',
      500,
      'a response was replaced by 500: no guard (requireScope() and the like) allowed this request; its guard comes after the handler: put it before',
      'a response was replaced by 500: no guard (requireScope() and the like) allowed this request',
    ],
    [
      'warn',
      200,
      'a route responded before its guard, which comes after the handler: put requireScope() and the like before the handler',
      'a route responded without a guard such as requireScope(): every valid token reaches it',
    ],
  ])('is named in the log, and only there: %s', async (unguarded, status, ofLate, ofNone) => {
    const through = gateApp({ unguarded, routes: late });
    for (const path of ['/v1/customers', '/v1/orders']) await through.get(GOOD, path).expect(status);
    expect(through.log.entries.map(({ message }) => message)).toEqual([ofLate, ofNone]);
  });
});

describe('unguarded: warn and allow', () => {
  const warning = {
    level: 'warn',
    fields: { route: 'GET /v1/:resource' },
    message: 'a route responded without a guard such as requireScope(): every valid token reaches it',
  };

  it.each<[string, GateAppOptions]>([
    ['warn', { unguarded: 'warn' }],
    ['the default', { unguarded: undefined }],
  ])('%s leaves the response unchanged and warns once per route', async (_what, options) => {
    const through = gateFor(json, options);
    const paths = ['/v1/customers', '/v1/customers', '/v1/orders'];
    for (const path of paths) await through.get(GOOD, path).expect(200, '"ok"');
    expect(through.log.entries).toEqual([warning]);
  });

  it.each<[string, RequestHandler[], number]>([
    ['warns about a route that responds later', [(_req, res) => void setImmediate(() => res.json('ok'))], 1],
    ['says nothing of a 404 that comes later', [(_req, res) => void setImmediate(() => res.sendStatus(404))], 0],
    ['says nothing of a guard that comes later', [later, requireScope('orders:read'), json], 0],
  ])('%s', async (_what, handlers, warnings) => {
    const through = gateApp({ unguarded: 'warn', routes: (app) => void app.get('/v1/orders', ...handlers) });
    await through.get(GOOD);
    expect(through.log.at('warn')).toHaveLength(warnings);
  });

  it.each<[string, GateAppOptions]>([
    ['allow', { unguarded: 'allow' }],
    ['the default of an optional gate', { unguarded: undefined, optional: true }],
  ])('%s says nothing', async (_what, options) => {
    const through = gateFor(json, options);
    await through.get(GOOD, '/v1/customers').expect(200, '"ok"');
    expect(through.log.entries).toEqual([]);
  });
});

describe('unguarded: refuse, and what comes after it', () => {
  it('calls back those who write on, so that no handler waits for ever', async () => {
    const called: string[] = [];
    const through = gateFor((_req, res) => {
      res.write(SECRET, () => called.push('write'));
      res.write(SECRET, 'utf8', () => called.push('write as UTF-8'));
      res.end(SECRET, () => called.push('end'));
    });
    expect((await through.get(GOOD, '/v1/customers')).status).toBe(500);
    expect(called).toEqual(['write', 'write as UTF-8', 'end']);
  });

  it('lets a stream that is piped run to its end', async () => {
    const source = Readable.from([SECRET, SECRET, SECRET]);
    const ended = once(source, 'end');
    const through = gateFor((_req, res) => void source.pipe(res));
    expect((await through.get(GOOD, '/v1/customers')).status).toBe(500);
    await ended;
  });

  it('keeps the headers that are not about the response it replaces', async () => {
    const through = gateFor((_req, res) => void res.set({ 'X-Request-Id': 'req-17', ETag: '"1"' }).send(SECRET));
    const { status, headers } = await through.get(GOOD, '/v1/customers');
    expect([status, headers['x-request-id'], headers['etag']]).toEqual([500, 'req-17', undefined]);
  });

  it('holds a response with an Allow header back that is not one to OPTIONS', async () => {
    const through = gateFor((_req, res) => void res.set('Allow', 'GET').send(SECRET));
    expect((await through.get(GOOD, '/v1/customers')).status).toBe(500);
  });

  it('leaves the mistakes of a handler that writes a response to the error handler', async () => {
    const through = gateFor((_req, res) => void res.status(404).end(17));
    // As Express's own error handler: a 4xx that the response has stays.
    expect((await through.get(GOOD, '/v1/customers')).status).toBe(404);
    expect(through.log.at('error').map(({ message }) => message)).toEqual(['unexpected error']);
  });

  it.each([
    ['lets the list of methods pass with which Express responds to OPTIONS', { get: true }, 200],
    ['holds a handler of OPTIONS back like any other', { get: false }, 500],
  ])('%s', async (_name, { get }, status) => {
    const handler: RequestHandler = (_req, res) => void res.send(SECRET);
    const through = gateApp({
      unguarded: 'refuse',
      routes: (app) => void (get ? app.get('/v1/customers', handler) : app.all('/v1/customers', handler)),
    });
    const response = await withToken(request(through.app).options('/v1/customers'), GOOD).expect(status);
    expect(response.text).not.toContain(SECRET);
  });
});

describe('unguarded, after two gates', () => {
  it.each([
    ['refuse', 'allow', 500],
    ['refuse', 'warn', 500],
    ['warn', 'refuse', 500],
    ['allow', 'refuse', 500],
    ['refuse', 'refuse', 500],
    ['warn', 'allow', 200],
    ['allow', 'allow', 200],
  ] as const)('the stricter one decides: %s before %s', async (outer, inner, status) => {
    const through = gateApp({
      unguarded: outer,
      routes(app) {
        app.use(testGate({ unguarded: inner }));
        app.get('/v1/orders', json);
        app.get('/v1/guarded', requireScope('orders:read'), json);
      },
    });
    await through.get(GOOD).expect(status);
    await through.get(GOOD, '/v1/guarded').expect(200, '"ok"');
  });
});

describe('unguarded, after responses that other middleware has patched', () => {
  /** As the package on-headers does it, on which compression and sessions build: a listener before the head is written. */
  const onHeaders =
    (listener: (res: Parameters<RequestHandler>[1]) => void): RequestHandler =>
    (_req, res, next) => {
      const writeHead = res.writeHead.bind(res) as (...args: unknown[]) => typeof res;
      res.writeHead = (...args: unknown[]) => {
        listener(res);
        return writeHead(res.statusCode, ...args.slice(1));
      };
      next();
    };
  /** As sessions do it: `end` is called later. */
  const endLater: RequestHandler = (_req, res, next) => {
    const end = res.end.bind(res) as (...args: unknown[]) => typeof res;
    res.end = ((...args: unknown[]) => (setImmediate(() => end(...args)), res)) as typeof res.end;
    next();
  };
  const toSuccess = onHeaders((res) => void (res.statusCode = 200));
  const toNotFound = onHeaders((res) => void (res.statusCode = 404));
  const missing: RequestHandler = (_req, res) => void res.status(404).json({ SECRET });
  const written: RequestHandler = (_req, res) => void (res.status(404), res.write(SECRET), res.end(SECRET));
  const ended: RequestHandler = (_req, res) => void res.status(404).end();
  const found: RequestHandler = (_req, res) => void res.json({ SECRET });

  it.each<[string, readonly RequestHandler[], number]>([
    ['a 404 that becomes a 200 while its head is written', [toSuccess, missing], 500],
    ['the same without a body', [toSuccess, ended], 500],
    ['the same in parts', [toSuccess, written], 500],
    ['the same, ended later', [endLater, toSuccess, missing], 500],
    ['the same, patched twice', [toSuccess, endLater, toSuccess, missing], 500],
    ['a 200, ended later', [endLater, found], 500],
    ['a 200 with a listener', [onHeaders(() => {}), found], 500],
    ['a 404 with a listener', [onHeaders(() => {}), missing], 404],
    ['a 200 that a guard allowed, with both', [requireScope('orders:read'), endLater, toSuccess, missing], 200],
    ['a 200 that would become a 404', [toNotFound, found], 500],
  ])('responds once and completely: %s', async (_what, handlers, status) => {
    const through = gateApp({ unguarded: 'refuse', routes: (app) => void app.get('/v1/orders', ...handlers) });
    for (let times = 0; times < 3; times++) {
      const response = await through.get(GOOD);
      expect(response.status).toBe(status);
      if (status === 500) expect(response.body).toMatchObject({ code: 'internal_error' });
    }
  });

  it.each<[string, RequestHandler]>([
    ['a listener before the head', onHeaders(() => {})],
    ['a session that ends later', endLater],
  ])('also when the response was patched before the gate: %s', async (_what, before) => {
    const { gate } = gateApp({ unguarded: 'refuse' });
    const app = express().use(before, gate, found);
    await getFrom(app, GOOD).expect(500);
  });

  it.each<[string, readonly RequestHandler[], RequestHandler]>([
    ['with a body', [toSuccess], missing],
    ['without a body', [toSuccess], ended],
    ['in parts', [toSuccess], written],
    ['with an explicit head', [toSuccess], (_req, res) => void res.writeHead(404).end(SECRET)],
    ['ended later', [toSuccess, endLater], missing],
    ['ended later by an outer one', [endLater, toSuccess], missing],
  ])('sends no byte of a 404 that middleware before the gate makes a 200: %s', async (_what, before, handler) => {
    const { gate, log } = gateApp({ unguarded: 'refuse' });
    const app = express().use(...before, gate, handler);
    const sent = getFrom(app, GOOD);
    await expect(sent).rejects.toThrow('socket hang up');
    expect(log.at('error')).toHaveLength(1);
    const guarded = express().use(...before, gate, requireScope('orders:read'), handler);
    await getFrom(guarded, GOOD).expect(200);
  });

  it.each(['writeHead', 'write', 'end'] as const)(
    'calls %s of middleware before the gate for a response that a guard allowed',
    async (name) => {
      const called: string[] = [];
      const patch: RequestHandler = (_req, res, next) => {
        const original = res[name].bind(res) as (...args: unknown[]) => never;
        res[name] = (...args: unknown[]) => (called.push(name), original(...args));
        next();
      };
      const { gate } = gateApp({ unguarded: 'refuse' });
      const app = express().use(patch, gate, requireScope('orders:read'), written);
      expect((await getFrom(app, GOOD)).text).toBe(SECRET + SECRET);
      expect(called).toEqual([name]);
    },
  );

  it('calls back a handler whose response it could not send', async () => {
    const { gate } = gateApp({ unguarded: 'refuse' });
    const called: string[] = [];
    const handler: RequestHandler = (_req, res) => void res.status(404).end(SECRET, () => called.push('end'));
    const app = express().use(toSuccess, gate, handler);
    await expect(getFrom(app, GOOD)).rejects.toThrow('socket hang up');
    expect(called).toEqual(['end']);
  });
});

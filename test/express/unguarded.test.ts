import type { RequestHandler } from 'express';
import { Readable } from 'node:stream';
import request from 'supertest';
import { requireClaim, requireScope } from '../../src';
import { gateApp } from '../support/gate-app';
import type { GateApp, GateAppOptions } from '../support/gate-app';
import { token } from '../support/issuer';
import { expectRefusal } from '../support/refusals';

const GOOD = token();
const SECRET = 'the customers of all stores';

/** Every way in which a handler can respond with 200 with the secret. */
const handlers: readonly [string, RequestHandler][] = [
  ['res.json', (_req, res) => void res.json({ SECRET })],
  ['res.send', (_req, res) => void res.send(SECRET)],
  ['res.send of bytes', (_req, res) => void res.send(Buffer.from(SECRET))],
  [
    'res.status and res.json',
    (_req, res) =>
      void res
        .status(201)
        .location(`/${encodeURIComponent(SECRET)}`)
        .json({ SECRET }),
  ],
  ['res.end', (_req, res) => void res.end(SECRET)],
  ['res.end with a callback', (_req, res) => void res.end(SECRET, () => {})],
  ['res.write and res.end', (_req, res) => void (res.write(SECRET) && res.write(SECRET), res.end(SECRET))],
  ['res.writeHead and res.end', (_req, res) => void res.writeHead(200, { 'x-secret': SECRET }).end(SECRET)],
  [
    'res.writeHead with a phrase',
    (_req, res) => void res.writeHead(200, SECRET, { 'content-type': 'text/plain' }).end(SECRET),
  ],
  ['res.flushHeaders', (_req, res) => (res.flushHeaders(), void res.end(SECRET))],
  ['a stream', (_req, res) => void Readable.from([SECRET, SECRET]).pipe(res)],
  [
    'a stream that comes later',
    (_req, res) => void setImmediate(() => Readable.from([SECRET]).pipe(res.type('text/plain'))),
  ],
  ['res.sendFile', (_req, res) => void res.sendFile(__filename)],
  ['res.attachment', (_req, res) => void res.attachment(`${SECRET}.csv`).send(SECRET)],
  ['a cookie and an ETag', (_req, res) => void res.cookie('secret', SECRET).set('ETag', `"${SECRET}"`).send(SECRET)],
];

function gateFor(handler: RequestHandler, options: GateAppOptions = {}): GateApp {
  return gateApp({ unguarded: 'refuse', routes: (app) => void app.all('/v1/:resource', handler), ...options });
}

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
    expect((await gateFor(handler).get(GOOD, '/v1/customers')).status).toBe(500);
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

  it('counts requireClaim() as a guard', async () => {
    const guard = requireClaim('client_id', (value) => value === 'pos-17');
    const through = gateApp({
      unguarded: 'refuse',
      routes: (app) => void app.get('/v1/orders', guard, (_req, res) => void res.json('ok')),
    });
    await through.get(GOOD).expect(200, '"ok"');
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
    const through = gateFor((_req, res) => void res.json({ SECRET }));
    const response = await request(through.app).head('/v1/customers').set('Authorization', `Bearer ${GOOD}`);
    expect(response.status).toBe(500);
  });

  it('holds back what an anonymous request would get, where it was chosen besides optional', async () => {
    const through = gateFor((_req, res) => void res.json({ SECRET }), { optional: true });
    expect((await through.get(undefined, '/v1/customers')).status).toBe(500);
  });

  it('does not let a guard that refused stand for one that allowed', async () => {
    const through = gateApp({
      unguarded: 'refuse',
      routes: (app) => void app.get('/v1/orders', requireScope('other:read'), (_req, res) => void res.json({ SECRET })),
    });
    expectRefusal(await through.get(GOOD), 'insufficient_scope', through, { scopes: ['other:read'] });
  });
});

describe('unguarded: warn and allow', () => {
  const handler: RequestHandler = (_req, res) => void res.json('ok');
  const warning = {
    level: 'warn',
    fields: { route: 'GET /v1/:resource' },
    message: 'a route responded without a guard such as requireScope(): every valid token reaches it',
  };

  it.each<[string, GateAppOptions]>([
    ['warn', { unguarded: 'warn' }],
    ['the default', { unguarded: undefined }],
  ])('%s leaves the response unchanged and warns once per route', async (_what, options) => {
    const through = gateFor(handler, options);
    for (const path of ['/v1/customers', '/v1/customers', '/v1/orders'])
      await through.get(GOOD, path).expect(200, '"ok"');
    expect(through.log.entries).toEqual([warning]);
  });

  it.each<[string, RequestHandler[], number]>([
    ['warns about a route that responds later', [(_req, res) => void setImmediate(() => res.json('ok'))], 1],
    ['says nothing of a 404 that comes later', [(_req, res) => void setImmediate(() => res.sendStatus(404))], 0],
    [
      'says nothing of a guard that comes later',
      [(_req, _res, next) => void setImmediate(next), requireScope('orders:read'), handler],
      0,
    ],
  ])('%s', async (_what, handlers, warnings) => {
    const through = gateApp({ unguarded: 'warn', routes: (app) => void app.get('/v1/orders', ...handlers) });
    await through.get(GOOD);
    expect(through.log.at('warn')).toHaveLength(warnings);
  });

  it.each<[string, GateAppOptions]>([
    ['allow', { unguarded: 'allow' }],
    ['the default of an optional gate', { unguarded: undefined, optional: true }],
  ])('%s says nothing', async (_what, options) => {
    const through = gateFor(handler, options);
    await through.get(GOOD, '/v1/customers').expect(200, '"ok"');
    expect(through.log.entries).toEqual([]);
  });
});

import type { RequestHandler } from 'express';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import request from 'supertest';
import { authenticate, requireScope } from '../../src';
import { gateApp } from '../support/gate-app';
import type { GateApp, GateAppOptions } from '../support/gate-app';
import { AUDIENCE, ISSUER, NOW_MS, token } from '../support/issuer';
import { jwks, testKey } from '../support/keys';
import { recordingLogger } from '../support/log';

const GOOD = token();
const SECRET = 'the customers of all stores';

function gateFor(handler: RequestHandler, options: GateAppOptions = {}): GateApp {
  return gateApp({ unguarded: 'refuse', routes: (app) => void app.all('/v1/:resource', handler), ...options });
}

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
    expect((await through.get(GOOD, '/v1/customers')).status).toBe(500);
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
    const response = await request(through.app).options('/v1/customers').set('Authorization', `Bearer ${GOOD}`);
    expect(response.status).toBe(status);
    expect(response.text).not.toContain(SECRET);
  });
});

describe('unguarded, after two gates', () => {
  const handler: RequestHandler = (_req, res) => void res.json('ok');

  function twoGates(outer: GateAppOptions['unguarded'], inner: GateAppOptions['unguarded'], guarded: boolean): GateApp {
    const trusted = { issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()), clock: () => NOW_MS };
    const second = authenticate({ ...trusted, logger: recordingLogger(), unguarded: inner });
    return gateApp({
      unguarded: outer,
      routes: (app) => void app.get('/v1/orders', second, ...(guarded ? [requireScope('orders:read')] : []), handler),
    });
  }

  it.each([
    ['refuse', 'allow', 500],
    ['refuse', 'warn', 500],
    ['warn', 'refuse', 500],
    ['allow', 'refuse', 500],
    ['refuse', 'refuse', 500],
    ['warn', 'allow', 200],
    ['allow', 'allow', 200],
  ] as const)('the stricter one decides: %s before %s', async (outer, inner, status) => {
    await twoGates(outer, inner, false).get(GOOD).expect(status);
    await twoGates(outer, inner, true).get(GOOD).expect(200, '"ok"');
  });
});

import type { Express } from 'express';
import request from 'supertest';
import type { Test } from 'supertest';
import { requireScope } from '../../src';
import { gateApp } from '../support/gate-app';
import type { GateApp, GateAppOptions } from '../support/gate-app';
import { token } from '../support/issuer';
import { expectRefusal } from '../support/refusals';

const ORIGIN = 'https://shop.test';

/** What a browser asks before it sends a request with a token from a page of another origin. */
function preflight({ app }: GateApp, headers: object = {}): Test {
  const asked = { Origin: ORIGIN, 'Access-Control-Request-Method': 'GET', ...headers };
  return request(app).options('/v1/orders').set(asked);
}

/** What `cors()` does after the gate. */
function allowOrigin(app: Express): void {
  app.use((req, res, next) => {
    res.setHeader('Access-Control-Allow-Origin', ORIGIN);
    if (req.method === 'OPTIONS') res.setHeader('Access-Control-Allow-Headers', 'authorization').status(204).end();
    else next();
  });
}

const strict = (routes: NonNullable<GateAppOptions['routes']>): GateApp => gateApp({ unguarded: 'refuse', routes });

describe('a CORS preflight', () => {
  it('is passed on to what responds to it, though it has no token', async () => {
    const through = strict((app, reach) => {
      allowOrigin(app);
      app.get('/v1/orders', requireScope('orders:read'), reach);
    });
    const response = await preflight(through);
    expect([response.status, response.headers['access-control-allow-headers']]).toEqual([204, 'authorization']);
    expect(through.decisions).toEqual([expect.objectContaining({ outcome: 'anonymous', method: 'OPTIONS' })]);
    expectRefusal(await through.get().set('Origin', ORIGIN), 'missing_token', through);
    expect((await through.get(token()).set('Origin', ORIGIN)).status).toBe(200);
    expect(through.log.at('error')).toEqual([]);
  });

  it('may be responded to with an empty 200, as old browsers need it', async () => {
    const through = strict((app) =>
      app.options('/v1/orders', (_req, res) => void res.set('Content-Length', '0').end()),
    );
    expect((await preflight(through)).status).toBe(200);
  });

  it('gets no body that no guard has allowed', async () => {
    const through = strict((app) =>
      app.options('/v1/orders', (req, res) => void res.json({ orders: [], auth: req.auth })),
    );
    const response = await preflight(through);
    expect([response.status, response.body]).toEqual([500, expect.objectContaining({ code: 'internal_error' })]);
  });

  it('does not pass a guard', async () => {
    const through = gateApp({ routes: (app, reach) => app.options('/v1/orders', requireScope('orders:read'), reach) });
    expectRefusal(await preflight(through), 'missing_token', through, { challengeScopes: ['orders:read'] });
  });

  it('with a bad token is refused: it is no preflight of a browser', async () => {
    const through = gateApp();
    expectRefusal(await preflight(through, { Authorization: 'Bearer x' }), 'malformed_token', through);
  });

  it.each([
    ['GET', { Origin: ORIGIN, 'Access-Control-Request-Method': 'GET' }],
    ['OPTIONS', { Origin: ORIGIN }],
    ['OPTIONS', { 'Access-Control-Request-Method': 'GET' }],
  ])('is nothing else: %s with %j needs a token', async (method, headers) => {
    const through = gateApp();
    const test = method === 'GET' ? request(through.app).get('/v1/orders') : request(through.app).options('/v1/orders');
    expectRefusal(await test.set(headers), 'missing_token', through);
  });
});

import type { IncomingMessage } from 'node:http';
import express from 'express';
import type { Express } from 'express';
import request from 'supertest';
import type { Test } from 'supertest';
import { requireScope } from '../../../src/gate';
import { gateApp } from '../../support/gate-app';
import type { GateApp } from '../../support/gate-app';
import { expectRefusal } from '../../support/refusals';

const ORIGIN = 'https://shop.test';

/** What a browser asks before it sends a request with a token from a page of another origin. */
function preflight({ app }: GateApp, headers: object = {}): Test {
  const asked = { Origin: ORIGIN, 'Access-Control-Request-Method': 'GET', ...headers };
  return request(app).options('/v1/orders').set(asked);
}

/** What `cors()` does. */
function allowOrigin(app: Express): void {
  app.use((req, res, next) => {
    res.setHeader('Access-Control-Allow-Origin', ORIGIN);
    if (req.method === 'OPTIONS') res.setHeader('Access-Control-Allow-Headers', 'authorization').status(204).end();
    else next();
  });
}

describe('a CORS preflight', () => {
  const hint =
    'a CORS preflight was refused, because browsers send it without a token: mount cors() before authenticate()';
  const hints = ({ log }: GateApp) => log.at('warn').filter(({ message }) => message === hint);

  it('is refused as any request without a token, and the log says once where to mount cors()', async () => {
    const through = gateApp({
      routes(app, reach) {
        allowOrigin(app);
        app.all('/v1/orders', reach);
      },
    });
    expectRefusal(await preflight(through), 'missing_token', through);
    expectRefusal(await preflight(through).send({ order: 17 }), 'missing_token', through);
    expect(hints(through).map(({ fields }) => fields)).toEqual([{ route: 'OPTIONS /v1/orders' }]);
  });

  it('is refused by verify() too, with the same hint', async () => {
    const { gate, log, ...through } = gateApp();
    const headers = { origin: ORIGIN, 'access-control-request-method': 'GET' };
    const req = { method: 'OPTIONS', url: '/v1/events', headers } as unknown as IncomingMessage;
    await expect(gate.verify(req)).rejects.toMatchObject({ reason: 'missing_token', status: 401 });
    expect(hints({ gate, log, ...through })).toHaveLength(1);
  });

  it('is responded to by cors() before the gate, and pages can read refusals', async () => {
    const through = gateApp();
    const app = express();
    allowOrigin(app);
    app.use(through.app);
    const response = await preflight({ ...through, app });
    expect([response.status, response.headers['access-control-allow-headers']]).toEqual([204, 'authorization']);
    const refused = await request(app).get('/v1/orders');
    expect([refused.status, refused.headers['access-control-allow-origin']]).toEqual([401, ORIGIN]);
    expect(hints(through)).toEqual([]);
  });

  it('does not pass a guard after an optional gate', async () => {
    const through = gateApp({
      optional: true,
      routes: (app, reach) => app.options('/v1/orders', requireScope('orders:read'), reach),
    });
    expectRefusal(await preflight(through), 'missing_token', through, { challengeScopes: ['orders:read'] });
    expect(hints(through)).toHaveLength(1);
  });

  it.each([
    ['GET', { Origin: ORIGIN, 'Access-Control-Request-Method': 'GET' }],
    ['OPTIONS', { Origin: ORIGIN }],
    ['OPTIONS', { 'Access-Control-Request-Method': 'GET' }],
  ])('is nothing else: no hint for %s with %j', async (method, headers) => {
    const through = gateApp();
    const test = method === 'GET' ? request(through.app).get('/v1/orders') : request(through.app).options('/v1/orders');
    expectRefusal(await test.set(headers), 'missing_token', through);
    expect(hints(through)).toEqual([]);
  });
});

import type { RequestListener } from 'node:http';
import type { Server, Socket } from 'node:net';
import express from 'express';
import { authenticate, requireScope } from '../../src/gate';
import { contractCases, createTestIssuer } from '../../src/testing';
import { listen } from '../support/listen';
import { failuresOf } from './failures-of';

const issuer = createTestIssuer();
const openapi = {
  openapi: '3.1.0',
  paths: { '/orders': { get: { security: [{ oauth2: ['orders:read'] }], responses: { 200: {}, 401: {}, 403: {} } } } },
  components: { securitySchemes: { oauth2: { type: 'oauth2' } } },
};

function ordersApp(): express.Express {
  const app = express();
  app.use(authenticate(issuer.options));
  return app.get('/orders', requireScope('orders:read'), (_req, res) => void res.json([]));
}

/** The cases about tokens and scopes against a server. */
async function failuresAt(handler: RequestListener, classes = ['token', 'scope'] as const) {
  const server = await listen(handler);
  const cases = contractCases({ url: server.url, openapi, issuer, classes });
  const failures = await failuresOf(cases);
  await server.close();
  return { failures, report: cases.report() };
}

describe('the connections of contract cases', () => {
  it('stay open at the own server, however long a test waits between two cases', async () => {
    const app = ordersApp();
    const limits = new Set<unknown>();
    const watched: RequestListener = (req, res) => {
      limits.add((req.socket as Socket & { server: Server & { keepAliveTimeout: number } }).server.keepAliveTimeout);
      app(req, res);
    };
    expect(await failuresOf(contractCases({ app: watched, openapi, issuer, classes: ['scope'] }))).toEqual([]);
    expect([...limits]).toEqual([0]);
  });

  it('are opened again, once, where a server has closed an idle one', async () => {
    const app = ordersApp();
    const used = new WeakSet<Socket>();
    let closed = 0;
    const { failures, report } = await failuresAt((req, res) => {
      if (!used.has(req.socket)) return void (used.add(req.socket), app(req, res));
      closed += 1;
      req.socket.destroy();
    });
    expect(failures).toEqual([]);
    expect(report.tested).toEqual(['GET /orders']);
    expect(report.refusals).toEqual([]);
    expect(closed).toBeGreaterThan(10);
  });

  it('refuse a request by being closed, which the report says once', async () => {
    const app = ordersApp();
    const { failures, report } = await failuresAt((req, res) => {
      if (!req.headers.authorization?.startsWith('Bearer ')) return void req.socket.destroy();
      app(req, res);
    });
    expect(failures).toEqual([]);
    expect(report.tested).toEqual(['GET /orders']);
    const habit = 'status of a refusal: expected 401, got none (socket hang up): GET /orders';
    expect(report.refusals).toEqual([habit]);
  });

  it('fail the case of a good token when they are closed', async () => {
    const { failures } = await failuresAt((req, res) => {
      const [, payload = ''] = req.headers.authorization?.split('.') ?? [];
      if (!Buffer.from(payload, 'base64url').includes('orders:read')) return void res.writeHead(401).end();
      req.socket.destroy();
    });
    expect(failures.map((one) => one.split('\n').map((line) => line.trim()))).toEqual([
      [
        'The API accepts tokens of the test issuer',
        expect.stringContaining('GET /orders responded nothing (socket hang up)'),
      ],
      ['GET /orders accepts a token with only orders:read', 'status: expected a response, got none (socket hang up)'],
    ]);
  });
});

import express from 'express';
import type { Express } from 'express';
import rateLimit from 'express-rate-limit';
import { authenticate, requireScope } from '../../src/gate';
import { contractCases, createTestIssuer } from '../../src/testing';
import { listen } from '../support/listen';
import { failuresOf } from './failures-of';

const issuer = createTestIssuer();
const gate = () => authenticate(issuer.options);
const list = { get: { security: [{ oauth2: ['orders:read'] }], responses: { 200: {} } } };
const revoke = { post: { security: [{ key: [] }], responses: { 200: {}, 401: {} } } };
const securitySchemes = { oauth2: { type: 'oauth2' }, key: { type: 'apiKey', in: 'header', name: 'Authorization' } };
const documentOf = (paths: object) => ({ openapi: '3.0.3', paths, components: { securitySchemes } });
const openapi = documentOf({ '/orders': list, '/revoke': revoke });

/** The outcome of an app in this process, and over HTTP. */
async function bothOf(app: Express, document: object) {
  const server = await listen(app);
  const outcomes = [];
  for (const at of [{ app }, { url: server.url }]) {
    const cases = contractCases({ ...at, openapi: document, issuer, classes: ['token', 'scope'], generations: false });
    outcomes.push({ failures: await failuresOf(cases), report: cases.report() });
  }
  await server.close();
  return outcomes;
}

describe('an API key in the header Authorization', () => {
  /** Takes a client secret, and not a bearer token. */
  function appWith(isAllowed: (authorization: string) => boolean): Express {
    const app = express();
    app.post('/revoke', (req, res) => {
      if (isAllowed(req.get('authorization') ?? '')) res.json({});
      else res.status(401).set('WWW-Authenticate', 'Client').end();
    });
    app.use(gate());
    return app.get('/orders', requireScope('orders:read'), (_req, res) => void res.json([]));
  }

  it('is no bearer token where no good token is accepted: the operation is not tested, for that reason', async () => {
    for (const { failures, report } of await bothOf(
      appWith((one) => one.startsWith('Client ')),
      openapi,
    )) {
      expect(failures).toEqual([]);
      expect(report.tested).toEqual(['GET /orders']);
      expect(report.notTested).toEqual([
        'POST /revoke: the key in its Authorization header is no token of the issuer: good tokens got 401; give the value in "requests", or test it by hand',
      ]);
    }
  });

  it.each([
    ['without a token', (one: string) => one === '' || one.startsWith('Client ')],
    ['with a bad token', (one: string) => one === 'Bearer not-a-token' || one.startsWith('Client ')],
    ['with any token', (one: string) => one !== ''],
  ])('is found where the operation is open %s', async (_who, isAllowed) => {
    for (const { failures } of await bothOf(appWith(isAllowed), openapi)) expect(failures).not.toEqual([]);
  });

  it('is a bearer token where good tokens are accepted', async () => {
    const app = express().use(gate());
    app.post('/revoke', (_req, res) => void res.json({}));
    app.get('/orders', requireScope('orders:read'), (_req, res) => void res.json([]));
    for (const { failures, report } of await bothOf(app, openapi)) {
      expect(failures).toEqual([]);
      expect(report.tested).toEqual(['GET /orders', 'POST /revoke']);
    }
  });
});

describe('a public operation', () => {
  const file = { get: { security: [], responses: { 200: {}, 403: {} } } };

  it('that documents its 403 and sends it is not tested, unless a gate refuses', async () => {
    const document = documentOf({ '/files/{id}': file });
    const signed = express().get('/files/:id', (_req, res) => void res.status(403).end());
    for (const { failures, report } of await bothOf(signed, document)) {
      expect(failures).toEqual([]);
      expect(report.public).toEqual([]);
      const why = 'it got 403 as documented; give values in "requests"';
      expect(report.notTested).toEqual([`GET /files/{id}: ${why}`]);
    }
    const closed = express()
      .use(gate())
      .get('/files/:id', (_req, res) => void res.end());
    for (const { failures } of await bothOf(closed, document)) expect(failures).toHaveLength(1);
  });
});

describe('a 429', () => {
  it.each([true, false])('is said to be a rate limit, with RateLimit headers: %s', async (standardHeaders) => {
    const app = express().use(rateLimit({ windowMs: 60_000, limit: 20, standardHeaders, legacyHeaders: false }));
    app.use(gate()).get('/orders', requireScope('orders:read'), (_req, res) => void res.json([]));
    const [first = ''] = await failuresOf(contractCases({ app, openapi: documentOf({ '/orders': list }), issuer }), 1);
    expect(first.split('\n')[1]?.trim()).toBe(
      'status: expected 401; this is a rate limit: raise it for tests, got 429',
    );
  });
});

import express from 'express';
import { authenticate, requireScope } from '../../src/gate';
import { contractCases, createTestIssuer } from '../../src/testing';
import { failuresOf } from './failures-of';

/** An app that is right, whatever its scope is called and however many scopes its document declares. */
function casesFor(scope: string, accepts: readonly string[] = [scope]) {
  const issuer = createTestIssuer();
  const app = express();
  app.use(authenticate({ ...issuer.options, logger: { info() {}, warn() {}, error() {} } }));
  app.get('/orders', requireScope({ anyOf: [...accepts] }), (_req, res) => void res.json([{ id: 'order-one' }]));
  const scopes = Object.fromEntries([scope, 'orders', 'me'].map((one) => [one, '']));
  const openapi = {
    openapi: '3.1.0',
    info: { title: 'Orders', version: '1' },
    paths: { '/orders': { get: { security: [{ oauth: [scope] }], responses: { 200: {} } } } },
    components: {
      securitySchemes: { oauth: { type: 'oauth2', flows: { clientCredentials: { tokenUrl: '/t', scopes } } } },
    },
  };
  return contractCases({ app, openapi, issuer, depth: 'full', classes: ['scope', 'form', 'method'] });
}

describe('contractCases() of an app that is right', () => {
  it.each(['items', 'ORDERS_READ', 'user-read-private', 'orders:read', 'orders.read'])(
    'fails no case where the scope is called %s',
    async (scope) => {
      expect(await failuresOf(casesFor(scope))).toEqual([]);
    },
  );

  it('fails no case for probes and pages of the document, unless it is strict', async () => {
    const issuer = createTestIssuer();
    const app = express();
    for (const path of ['/healthz', '/openapi.json', '/docs']) app.get(path, (_req, res) => void res.sendStatus(200));
    app.use(authenticate(issuer.options));
    app.get('/orders', requireScope('orders'), (_req, res) => void res.sendStatus(200));
    const get = { security: [{ oauth: ['orders'] }], responses: { 200: {} } };
    const components = { securitySchemes: { oauth: { type: 'oauth2' } } };
    const openapi = { openapi: '3.1.0', paths: { '/orders': { get } }, components };
    const failed = (strict: boolean) =>
      failuresOf(contractCases({ app, openapi, issuer, classes: ['routes'], strict }));
    expect(await failed(false)).toEqual([]);
    expect((await failed(true)).join('\n')).toContain('GET /healthz: the app has it');
    app.get('/metrics', (_req, res) => void res.sendStatus(200));
    expect((await failed(false)).join('\n')).toContain('GET /metrics: the app has it');
  });

  it('finds that a declared parent is accepted', async () => {
    expect(await failuresOf(casesFor('orders:read', ['orders:read', 'orders']))).toContainEqual(
      expect.stringContaining('found: expected nothing, got a parent instead of a scope: 200'),
    );
  });
});

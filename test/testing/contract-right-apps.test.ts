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

  it('finds that a declared parent is accepted', async () => {
    expect(await failuresOf(casesFor('orders:read', ['orders:read', 'orders']))).toContainEqual(
      expect.stringContaining('found: expected nothing, got a parent instead of a scope: 200'),
    );
  });
});

import express from 'express';
import { authenticate, defineScopes } from '../../src';
import { auditRoutes, contractCases, createTestIssuer } from '../../src/testing';
import { failuresOf } from './failures-of';

describe('scopes that grant others', () => {
  const shop = defineScopes({
    'orders:write': { implies: ['orders:read'] },
    'order.read': { replacedBy: 'orders:read', until: '2999-01-01' },
  });
  const issuer = createTestIssuer();
  const app = express();
  app.use(authenticate({ ...issuer.options, logger: { info() {}, warn() {}, error() {} } }));
  app.get('/orders', shop.requireScope('orders:read'), (_req, res) => void res.json([]));
  const documented = (grants: object) => ({
    openapi: '3.1.0',
    info: { title: 'Orders', version: '1' },
    paths: { '/orders': { get: { security: [{ oauth: ['orders:read'] }], responses: { 200: {} } } } },
    components: {
      securitySchemes: {
        oauth: {
          type: 'oauth2',
          flows: {
            clientCredentials: { tokenUrl: '/t', scopes: { 'orders:read': '', 'orders:write': '', 'order.read': '' } },
          },
          'x-scope-grants': grants,
        },
      },
    },
  });
  const failing = async (openapi: object): Promise<readonly string[]> =>
    failuresOf(contractCases({ app, openapi, issuer, classes: ['scope', 'routes'] }));

  it('are in x-scope-grants of the document, and both have to agree', async () => {
    const grants = { 'orders:write': ['orders:read'], 'order.read': 'orders:read' };
    expect(await failing(documented(grants))).toEqual([]);
    expect(auditRoutes(app, documented(grants))).toEqual([]);
    expect(await failing(documented({}))).toEqual([
      expect.stringContaining('GET /orders refuses a token with every scope except orders:read'),
    ]);
    expect(await failing(documented({ ...grants, 'orders:pay': ['orders:read'] }))).toEqual([
      expect.stringContaining('GET /orders accepts a token with only orders:pay'),
    ]);
  });
});

import { contractCases, createTestIssuer } from '../../src/testing';

const secured = (scope: string): object => ({ security: [{ oauth: [scope] }], responses: { 200: {} } });

it('the report names security requirements that look like mistakes', () => {
  const openapi = {
    openapi: '3.1.0',
    info: { title: 'Orders', version: '1' },
    paths: {
      '/orders': { get: secured('orders:read'), post: { security: [], responses: { 201: {} } } },
      '/orders/': { get: secured('orders:see') },
      '/orders/{id}': { get: secured('orders:read'), delete: secured('orders:read') },
      '/Orders/{name}': { get: secured('orders:read') },
      '/health': { get: { security: [], responses: { 200: {} } } },
    },
    components: {
      securitySchemes: {
        oauth: {
          type: 'oauth2',
          flows: {
            clientCredentials: { tokenUrl: '/t', scopes: { 'orders:read': '', 'orders:see': '', 'orders:pay': '' } },
          },
        },
      },
    },
  };
  const cases = contractCases({ url: 'http://127.0.0.1:1', openapi, issuer: createTestIssuer() });
  expect(cases.report().security).toEqual([
    'POST /orders writes, and anybody may call it',
    'scope orders:pay is declared, and no operation requires it',
    'GET /orders and GET /orders/ are one route, and require different scopes',
  ]);
  expect(String(cases.report())).toContain('Security requirements that look like mistakes: 3\n  POST /orders writes');
});

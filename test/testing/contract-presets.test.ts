import express from 'express';
import type { Express } from 'express';
import request from 'supertest';
import { authenticate, requireScope } from '../../src/gate';
import type { AuthenticateOptions } from '../../src/gate';
import { PRESET_NAMES } from '../../src/gate/token/presets';
import { contractCases, createTestIssuer } from '../../src/testing';
import type { TestIssuer } from '../../src/testing';
import { failuresOf } from './failures-of';

const openapi = {
  openapi: '3.1.0',
  paths: {
    '/orders': {
      get: { security: [{ oauth2: ['orders:read'] }], responses: { 200: {} } },
      post: { security: [{ oauth2: ['orders:write', 'items:read'] }], responses: { 201: {} } },
    },
  },
  components: { securitySchemes: { oauth2: { type: 'oauth2' } } },
};

function ordersApp(options: AuthenticateOptions): Express {
  const app = express().use(authenticate(options));
  app.get('/orders', requireScope('orders:read'), (req, res) => void res.json({ client: req.auth?.clientId }));
  return app.post('/orders', requireScope('orders:write', 'items:read'), (_req, res) => void res.sendStatus(201));
}

/** What the app of a user keeps in tests: everything but the issuer. */
const KEPT: readonly (readonly [string, Partial<AuthenticateOptions>])[] = [
  ...PRESET_NAMES.map((preset) => [`preset ${preset}`, { preset }] as const),
  ['scopes.from a claim', { scopes: { from: ['permissions'] } }],
  ['scopes.from a claim in another one', { preset: 'keycloak', scopes: { from: ['realm_access.roles'] } }],
  ['scopes.from with a prefix', { scopes: { from: [{ claim: 'permissions', prefix: 'orders:' }, 'scp'] } }],
  [
    'scopes.map',
    {
      preset: 'entra',
      scopes: {
        map: {
          Everything: ['orders:read', 'orders:write', 'items:read'],
          'Orders.Read.All': 'orders:read',
          'Orders.Write.All': 'orders:write',
          'commerce/items': ['items:read'],
        },
      },
    },
  ],
];

describe('tokens in the shape of a preset', () => {
  it.each(KEPT)('are made by contractCases() for an app that keeps its %s', async (_what, kept) => {
    const issuer = createTestIssuer();
    const app = ordersApp({ ...issuer.options, ...kept } as AuthenticateOptions);
    const cases = contractCases({ app, openapi, issuer, classes: ['token', 'scope', 'state'], depth: 'quick' });
    expect(await failuresOf(cases)).toEqual([]);
    expect(cases.report().tested).toHaveLength(2);
  });

  it('of Entra have application roles, and scopes only where a test gives them', async () => {
    const issuer = createTestIssuer({ preset: 'entra' });
    const app = ordersApp(issuer.options);
    const claimsOf = (token: string): unknown =>
      JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    const ofApp = issuer.token({ scope: 'orders:read' });
    expect(claimsOf(ofApp)).toMatchObject({ roles: ['orders:read'] });
    expect(claimsOf(ofApp)).not.toHaveProperty('scp');
    const ofUser = issuer.token({ claims: { scp: 'profile', roles: ['orders:read'] } });
    for (const [token, status] of [
      [ofApp, 200],
      [ofUser, 403],
    ] as const) {
      const response = await request(app).get('/orders').set('Authorization', `Bearer ${token}`);
      expect(response.status).toBe(status);
    }
  });

  it.each(KEPT)('are made by createTestIssuer() with the %s, and die with a change', async (_what, kept) => {
    const { preset, scopes } = kept as Parameters<typeof createTestIssuer>[0] & object;
    const issuer = createTestIssuer({ preset, scopes });
    const app = ordersApp(issuer.options);
    const call = async (token: string) => {
      const { status, body } = await request(app).get('/orders').set('Authorization', `Bearer ${token}`);
      return `${status} ${body.client ?? body.code}`;
    };
    for (let change = 0; change < 3; change += 1) {
      const token = issuer.token({ scope: 'orders:read', clientId: 'till-1' });
      expect(await call(token)).toBe('200 till-1');
      expect(await call(issuer.token({ scope: 'orders:readx', clientId: 'till-1' }))).toBe('403 insufficient_scope');
      issuer.bump('till-1');
      expect(await call(token)).toBe('401 superseded');
    }
  });

  it('are as they were under the preset rfc9068', () => {
    const parse = (issuer: TestIssuer) =>
      issuer
        .token({ scope: 'orders:read' })
        .split('.', 2)
        .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>);
    const [plain, named] = [createTestIssuer(), createTestIssuer({ preset: 'rfc9068' })].map(parse);
    expect(Object.keys(named![0]!)).toEqual(Object.keys(plain![0]!));
    expect(new Set(Object.keys(named![1]!))).toEqual(new Set(Object.keys(plain![1]!)));
  });

  it('that do not fit are explained by the first red case', async () => {
    const issuer = createTestIssuer();
    const other = ordersApp({ ...issuer.options, scopes: { map: { Orders: 'orders:cancel' } } });
    const [first = ''] = await failuresOf(contractCases({ app: other, openapi, issuer, classes: ['scope'] }), 1);
    expect(first).toContain('GET /orders accepts a token with only orders:read');
    expect(first).toMatch(/the gate: expected to accept it, got .*orders:read/);
  });
});

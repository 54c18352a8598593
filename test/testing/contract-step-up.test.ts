import express from 'express';
import { authenticate, requireAuthentication, requireScope } from '../../src';
import { contractCases, createTestIssuer } from '../../src/testing';
import { failuresOf } from './failures-of';

describe('routes that require how a user authenticated', () => {
  const issuer = createTestIssuer();
  const gate = authenticate({ ...issuer.options, logger: { info() {}, warn() {}, error() {} } });
  const required = { acr: ['urn:example:mfa', 'urn:example:key'], maxAgeSeconds: 300 };

  function appWith(...guards: readonly ReturnType<typeof requireScope>[]): express.Express {
    const app = express();
    app.use(gate);
    app.get('/refunds', ...guards, (_req, res) => void res.json([]));
    return app;
  }
  const scope = requireScope('refunds:read');
  const guarded = appWith(requireAuthentication(required), scope);

  const documented = (authentication?: unknown) => ({
    openapi: '3.1.0',
    info: { title: 'Refunds', version: '1' },
    paths: {
      '/refunds': {
        get: {
          security: [{ oauth: ['refunds:read'] }],
          responses: { 200: {}, 400: {}, 401: {}, 403: {} },
          ...(authentication !== undefined && { 'x-authentication': authentication }),
        },
      },
    },
    components: {
      securitySchemes: {
        oauth: { type: 'oauth2', flows: { clientCredentials: { tokenUrl: '/t', scopes: { 'refunds:read': '' } } } },
      },
    },
  });
  const suite = (app: express.Express, authentication?: unknown, classes?: ['scope']) =>
    contractCases({ app, openapi: documented(authentication), issuer, classes });

  const WEAK = [
    'GET /refunds refuses a token that does not say how its user authenticated',
    'GET /refunds refuses a token with the acr urn:example:mfax',
    'GET /refunds refuses a token of a user who authenticated more than 300 s ago',
  ];

  it.each([
    ['its guard', undefined],
    ['x-authentication of the document', required],
  ])('are called by users who have, as %s says, and by others who are refused', async (_source, authentication) => {
    const cases = suite(guarded, authentication);
    expect(cases.map(({ name }) => name)).toEqual(expect.arrayContaining(WEAK));
    expect(await failuresOf(cases)).toEqual([]);
  });

  it('fail where the app requires less than the document', async () => {
    const weaker = appWith(requireAuthentication({ acr: required.acr }), scope);
    expect(await failuresOf(suite(weaker, required, ['scope']))).toEqual([expect.stringContaining(WEAK[2]!)]);
    expect(await failuresOf(suite(appWith(scope), required, ['scope']))).toEqual(
      WEAK.map((name) => expect.stringContaining(name)),
    );
  });

  it('fail where the app requires more than the document', async () => {
    expect(await failuresOf(suite(guarded, { acr: 'urn:example:password' }, ['scope']))).toContainEqual(
      expect.stringContaining('GET /refunds accepts a token with only refunds:read'),
    );
  });

  it.each([{}, { acr: 'two words' }, { maxAge: 5 }, 7])('x-authentication cannot be %j', (authentication) => {
    expect(() => suite(guarded, authentication)).toThrow(/x-authentication of GET \/refunds/);
  });

  it('other routes have no such cases', () => {
    expect(suite(appWith(scope)).filter(({ name }) => name.includes('authenticated'))).toEqual([]);
  });
});

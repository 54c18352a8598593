import express from 'express';
import type { RequestHandler } from 'express';
import { authenticate, requireAuthenticated, requireClaim } from '../../../src';
import { contractCases, createTestIssuer } from '../../../src/testing';
import { silent } from '../sample-app';
import { audit, documentOf, done, gate } from './sample';

const GUARD = Symbol.for('tillgate.guard');

/** A middleware with extra members. */
function withMembers(members: object): RequestHandler {
  return Object.assign(((_req, _res, next) => next()) as RequestHandler, members);
}

function findings(guard: RequestHandler, scopes: readonly string[]): readonly string[] {
  const app = express();
  app.get('/v1/orders', gate(), guard, done);
  return audit(app, documentOf({ 'GET /v1/orders': scopes })).filter((finding) => !finding.startsWith('unused-scope'));
}

describe('guards in auditRoutes()', () => {
  it.each([
    ['all of some scopes', { allOf: ['orders:read'] }, ['orders:read']],
    ['any of some scopes', { anyOf: ['orders:read'] }, ['orders:read']],
    ['a claim', { claim: 'store' }, []],
    ['any token', {}, []],
  ])('are recognised by their symbol, also those of another copy of the package: %s', (_what, requirement, scopes) => {
    expect(findings(withMembers({ [GUARD]: requirement }), scopes)).toEqual([]);
  });

  it.each([
    ['claim', { claim: 'store' }],
    ['requirement', { requirement: { allOf: ['orders:read'] } }],
  ])('are not recognised by a member named %s, which any function may have', (_name, members) => {
    expect(findings(withMembers(members), ['orders:read'])).toEqual(['unguarded-route GET /v1/orders']);
  });

  it('that allow any token fit an operation that requires a token and no scope', () => {
    expect(findings(requireAuthenticated(), [])).toEqual([]);
    expect(findings(requireClaim('store', Boolean), [])).toEqual([]);
  });

  it('that allow any token do not fit an operation that requires a scope', () => {
    expect(findings(requireAuthenticated(), ['orders:read'])).toEqual(['wrong-requirement GET /v1/orders']);
  });
});

describe('guards in contractCases()', () => {
  const issuer = createTestIssuer();
  const openapi = {
    openapi: '3.1.0',
    paths: {
      '/me': {
        get: {
          security: [{ oauth: [] }],
          responses: { 200: {}, '4XX': { content: { 'application/problem+json': {} } } },
        },
      },
    },
    components: { securitySchemes: { oauth: { type: 'oauth2', flows: {} } } },
  };

  async function failures(...guards: readonly RequestHandler[]): Promise<readonly string[]> {
    const app = express();
    app.use(authenticate({ ...issuer.options, unguarded: 'refuse', logger: silent }));
    app.get('/me', ...guards, (_req, res) => void res.status(200).end());
    const messages: string[] = [];
    for (const { run } of contractCases({ app, openapi, issuer })) {
      await run().catch((error: Error) => messages.push(error.message));
    }
    return messages;
  }

  it('may allow any token where the operation requires no scope', async () => {
    expect(await failures(requireAuthenticated())).toEqual([]);
  });

  it('are required by the gate when it refuses what no guard has allowed', async () => {
    expect(await failures()).toContainEqual(expect.stringMatching(/^GET \/me accepts a token without scopes\n/));
  });
});

import express from 'express';
import request from 'supertest';
import { authenticate, protectedResourceMetadata, requireScope } from '../../src';
import { createTestIssuer } from '../../src/testing';

/** Puts another text in the place of each entry of an array, and of each array in it. */
function overwrite(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  const members = value as Record<string, unknown>;
  for (const key of Object.keys(members)) {
    overwrite(members[key]);
    if (typeof members[key] === 'string') members[key] = 'changed';
  }
}

it('options of a gate, of guards and of the metadata that are changed later change nothing', async () => {
  const issuer = createTestIssuer();
  const { keys, clock, schedule, generationSource } = issuer.options;
  const own = {
    audience: [issuer.audience],
    algorithms: ['ES256' as const],
    clientIds: ['pos-17'],
    keys: structuredClone(keys!),
    scopes: { from: ['roles', ['https://login.test/roles']], map: { seller: ['orders:read'], boss: 'orders:write' } },
  };
  const each = { issuer: issuer.issuer, generationSource, ...own };
  const issuers = [each];
  const options = { issuers, realm: 'shop', clock, schedule, logger: { info() {}, warn() {}, error() {} } };
  const published = { resource: 'https://api.test', authorizationServers: [issuer.issuer], scopes: ['orders:read'] };
  const [all, any] = [['orders:read', 'orders:write'], { anyOf: ['orders:read', 'items:read'] }];
  const app = express();
  app.use(protectedResourceMetadata(published));
  app.use(authenticate(options));
  app.get('/all', requireScope(all), (_req, res) => res.json('all'));
  app.get('/any', requireScope(any), (_req, res) => res.json('any'));

  overwrite({ own, published, all, any });
  Object.assign(each, { issuer: 'https://evil.test', audience: 'https://evil.test' });
  Object.assign(options, { realm: 'evil', optional: true });
  issuers.pop();

  const statusOf = async (path: string, claims: object): Promise<number> => {
    const token = issuer.token({ clientId: 'pos-17', claims: claims as Record<string, unknown> });
    return (await request(app).get(path).auth(token, { type: 'bearer' })).status;
  };
  expect(await statusOf('/all', { roles: ['seller'], 'https://login.test/roles': ['boss'] })).toBe(200);
  expect(await statusOf('/all', { roles: ['seller'] })).toBe(403);
  expect(await statusOf('/any', { roles: ['seller'] })).toBe(200);
  expect(await statusOf('/any', { roles: ['changed'] })).toBe(403);
  const { headers } = await request(app).get('/any').expect(401);
  expect(headers['www-authenticate']).toMatch(/^Bearer realm="shop"/);
  const { body } = await request(app).get('/.well-known/oauth-protected-resource').expect(200);
  expect(body).toMatchObject({
    resource: 'https://api.test',
    authorization_servers: [issuer.issuer],
    scopes_supported: ['orders:read'],
  });
});

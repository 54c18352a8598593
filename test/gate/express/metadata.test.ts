import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import express from 'express';
import type { Request } from 'express';
import request from 'supertest';
import { protectedResourceMetadata, requireAuthenticated, requireClaim, requireScope } from '../../../src/gate/index';
import type { GateOptions, Middleware } from '../../../src/gate/index';
import { dpop, mtls } from '../../../src/gate/possession/index';
import { gateApp, testGate, withToken } from '../../support/gate-app';
import type { GateAppOptions } from '../../support/gate-app';
import { ISSUER, token } from '../../support/issuer';
import { jwks, testKey } from '../../support/keys';
import { expectRefusal } from '../../support/refusals';

const WELL_KNOWN = '/.well-known/oauth-protected-resource';

function metadataOf(options: GateAppOptions = {}): Middleware {
  return protectedResourceMetadata(gateApp({ resource: 'https://api.test', ...options }).gate);
}

function appWith(options: GateAppOptions = {}): express.Express {
  return express().use(metadataOf(options), (_req, res) => void res.status(404).end('next'));
}

describe('protectedResourceMetadata() (RFC 9728)', () => {
  it('serves the metadata without a token, cacheable', async () => {
    const response = await request(appWith({ challengeScopes: ['orders:read', 'orders:write'] })).get(WELL_KNOWN);
    expect(response.status).toBe(200);
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(response.headers['cache-control']).toBe('public, max-age=300');
    expect(response.body).toEqual({
      resource: 'https://api.test',
      authorization_servers: [ISSUER],
      bearer_methods_supported: ['header'],
      scopes_supported: ['orders:read', 'orders:write'],
    });
  });

  it('serves a resource with a path at the URL of section 3.1, and at the plain one', async () => {
    const app = appWith({ resource: 'https://api.test/shop' });
    await request(app).get(`${WELL_KNOWN}/shop`).expect(200);
    await request(app).get(`${WELL_KNOWN}/shop?x=1`).expect(200);
    await request(app).get(`${WELL_KNOWN}?x=1`).expect(200);
    await request(app).get(`${WELL_KNOWN}/other`).expect(404, 'next');
    await request(app).get(`${WELL_KNOWN}/shop/`).expect(404, 'next');
  });

  it.each([
    ['https://api.test/', '', '/'],
    ['https://api.test/shop/', '/shop/', '/shop'],
    ['https://api.test/shop?tenant=1', '/shop?tenant=1', '/shop'],
    ['https://api.test/shop/?tenant=1', '/shop/?tenant=1', '/shop?tenant=1'],
    ['https://api.test?tenant=1', '?tenant=1', '?tenant=2'],
    ['https://api.test/?tenant=1&a=?', '?tenant=1&a=?', '?tenant=1'],
  ])('keeps a trailing slash and the query of %s: %s, not %s', async (resource, own, other) => {
    const app = appWith({ resource });
    const { body } = await request(app).get(`${WELL_KNOWN}${own}`).expect(200);
    expect(body.resource).toBe(resource);
    await request(app).get(`${WELL_KNOWN}${other}`).expect(404, 'next');
    const challenge = (await gateApp({ resource }).get()).headers['www-authenticate'] as string;
    const { origin } = new URL(resource);
    expect(challenge).toBe(`Bearer realm="api", resource_metadata="${origin}${WELL_KNOWN}${own}"`);
  });

  it('tells the resources of one path apart by their query', async () => {
    const tenants = ['1', '2'].map((tenant) => metadataOf({ resource: `https://api.test/shop?tenant=${tenant}` }));
    const app = express().use(...tenants);
    const { body } = await request(app).get(`${WELL_KNOWN}/shop?tenant=2`).expect(200);
    expect(body.resource).toBe('https://api.test/shop?tenant=2');
    await request(app).get(`${WELL_KNOWN}/shop`).expect(404);
  });

  it('responds to HEAD with the headers alone, also where Node is asked to refuse a body', async () => {
    const server = createServer({ rejectNonStandardBodyWrites: true }, appWith() as RequestListener);
    const head = await request(server).head(WELL_KNOWN).expect(200);
    expect(Number(head.headers['content-length'])).toBeGreaterThan(50);
    await request(appWith()).get(`${WELL_KNOWN}x`).expect(404, 'next');
  });

  it('may be read by pages of any origin, with headers of their own', async () => {
    const app = appWith();
    for (const call of [request(app).get(WELL_KNOWN), request(app).head(WELL_KNOWN)]) {
      expect((await call.set('Origin', 'https://tool.test')).headers['access-control-allow-origin']).toBe('*');
    }
    const { status, headers, text } = await request(app)
      .options(WELL_KNOWN)
      .set('Origin', 'https://tool.test')
      .set('Access-Control-Request-Method', 'GET')
      .set('Access-Control-Request-Headers', 'mcp-protocol-version');
    expect([status, text]).toEqual([204, '']);
    expect(headers).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET, HEAD',
      'access-control-allow-headers': '*',
      'access-control-max-age': '86400',
      allow: 'GET, HEAD, OPTIONS',
    });
    await request(app).options(`${WELL_KNOWN}/other`).expect(404, 'next');
  });

  it.each(['post', 'put', 'patch', 'delete'] as const)('refuses %s with 405 and what is allowed', async (method) => {
    const { status, headers, body } = await request(appWith())[method](WELL_KNOWN);
    expect(status).toBe(405);
    expect(headers).toMatchObject({
      allow: 'GET, HEAD, OPTIONS',
      'access-control-allow-origin': '*',
      'content-type': 'application/problem+json; charset=utf-8',
    });
    expect(body).toEqual({
      type: 'about:blank',
      title: 'Method Not Allowed',
      status: 405,
      detail: 'The metadata can be read with GET only.',
      code: 'method_not_allowed',
    });
    await request(appWith())[method](`${WELL_KNOWN}/other`).expect(404, 'next');
  });

  it('is where the challenge of a gate says, and tells route audits its paths', async () => {
    const resource = 'https://api.test/shop';
    const challenge = (await gateApp({ resource }).get()).headers['www-authenticate'] as string;
    const { pathname, origin } = new URL(/resource_metadata="([^"]*)"/.exec(challenge)?.[1] ?? '');
    expect(origin).toBe('https://api.test');
    await request(appWith({ resource })).get(pathname).expect(200);
    const shownBy = ({ name, serves }: { name: string; serves?: unknown }): unknown => [name, serves];
    const paths = [WELL_KNOWN, `${WELL_KNOWN}/shop/`];
    const middleware = metadataOf({ resource: `${resource}/?tenant=1` });
    expect(shownBy(middleware)).toEqual(['protectedResourceMetadata', paths]);
    expect(shownBy(metadataOf())).toEqual(['protectedResourceMetadata', [WELL_KNOWN]]);
  });

  it('leaves a response that has been sent to what follows, also without Express', async () => {
    const middleware = metadataOf();
    let passed = 0;
    const server = createServer((req, res) => {
      res.end('first');
      middleware(req, res, () => passed++);
    });
    const { text } = await request(server).get(WELL_KNOWN);
    expect([text, passed]).toEqual(['first', 1]);
  });

  it.each<[string, unknown, string]>([
    ['nothing', undefined, 'undefined'],
    ['options', { resource: 'https://api.test' }, 'an object'],
    ['a middleware that is no gate', () => undefined, 'a function'],
    ['a gate without a resource', gateApp().gate, 'a function'],
  ])('refuses %s at construction', (_what, given, got) => {
    const expected = 'what authenticate() returned, with the option "resource"';
    expect(() => protectedResourceMetadata(given as Middleware)).toThrow(
      new TypeError(`protectedResourceMetadata(): expected ${expected}, got ${got}`),
    );
  });
});

describe('what the metadata takes from its gate', () => {
  const resource = 'https://api.test/shop';
  const OTHER = 'https://other.test';
  const issuers = [ISSUER, OTHER].map((issuer) => ({ issuer, audience: 'https://api.test', keys: jwks(testKey()) }));
  const anyKind = [dpop({ algorithms: ['ES256', 'EdDSA'] }), mtls()];
  const dpopOf = (required: boolean, algorithms: readonly string[]) => ({
    dpop_signing_alg_values_supported: algorithms,
    dpop_bound_access_tokens_required: required,
  });
  const ALL = ['ES256', 'ES384', 'EdDSA', 'Ed25519', 'PS256', 'RS256'];
  const SOME = ['ES256', 'EdDSA', 'Ed25519'];
  const servers = { authorization_servers: [ISSUER] };
  const kinds = { ...servers, ...dpopOf(false, SOME), tls_client_certificate_bound_access_tokens: true };

  it.each<[string, GateAppOptions, object]>([
    ['nothing else where the gate has nothing else', {}, servers],
    ['all issuers', { issuers }, { authorization_servers: [ISSUER, OTHER] }],
    ['no issuer that is not a URL, as one with given keys may be', { issuer: 'my-issuer' }, {}],
    ['a resource with http:', { resource: 'http://api.internal' }, { ...servers, resource: 'http://api.internal' }],
    ['DPoP and mutual TLS', { possession: anyKind }, kinds],
    ['DPoP, required', { possession: [dpop()], possessionRequired: true }, { ...servers, ...dpopOf(true, ALL) }],
    ['any of two kinds, required', { possession: anyKind, possessionRequired: true }, kinds],
  ])('%s', async (_what, options, members) => {
    const { body } = await request(appWith({ resource, ...options })).get(WELL_KNOWN);
    expect(body).toEqual({ resource, bearer_methods_supported: ['header'], ...members });
  });
});

describe('challengeScopes', () => {
  const challengeScopes = ['orders:read', 'orders:write'];

  it('are in the challenge of a 401, so that a client knows what to ask for', async () => {
    const through = gateApp({ challengeScopes });
    expectRefusal(await through.get(), 'missing_token', through, { challengeScopes });
    expectRefusal(await through.get(token({ claims: { exp: 1 } })), 'expired', through, { challengeScopes });
  });

  it('are not in a 403, which names what the route requires, and not in a 400', async () => {
    const through = gateApp({ challengeScopes });
    const weak = token({ claims: { scope: 'x' } });
    expectRefusal(await through.get(weak), 'insufficient_scope', through, { scopes: ['orders:read'] });
    expectRefusal(await through.get('a b'), 'malformed_authorization', through);
  });

  it('are with the error in the challenge of the scheme that was used', async () => {
    const through = gateApp({ challengeScopes, possession: [dpop({ baseUrl: 'https://api.test' })] });
    expectRefusal(await through.get(), 'missing_token', through, { challengeScopes, dpop: 'accepted' });
  });

  const grammar = 'a scope without blanks, quotes and backslashes';
  it.each<[unknown, string]>([
    [[], 'at least one scope, got an empty array'],
    ['orders:read', 'at least one scope, got "orders:read"'],
    [['a b'], `${grammar}, got "a b"; write each scope as a string of its own`],
  ])('are checked at construction: %j', (scopes, message) => {
    expect(() => gateApp({ challengeScopes: scopes } as GateAppOptions)).toThrow(
      new TypeError(`authenticate(): option "challengeScopes": expected ${message}`),
    );
  });
});

describe('the scope of a 401', () => {
  function appWith(options: Pick<GateOptions, 'challengeScopes' | 'refusals'>, ...guards: Middleware[]) {
    const gate = testGate(options);
    return express().post('/mcp', gate, express.json(), ...guards, (_req, res) => void res.json('reached'));
  }

  async function challenge(app: express.Express, raw?: string): Promise<unknown> {
    const response = await withToken(request(app).post('/mcp').send({}), raw);
    const header = response.headers['www-authenticate'] as string;
    const body = response.body as { required_scopes?: unknown };
    return [response.status, /scope="([^"]*)"/.exec(header)?.[1], body.required_scopes];
  }

  it.each<[string, Middleware[], string | undefined]>([
    ['its guard requires', [requireScope('tools')], 'tools'],
    ['all guards of the row require', [requireScope('tools'), requireScope({ anyOf: ['a', 'tools'] })], 'tools a'],
    ['guards without scopes require: nothing', [requireAuthenticated(), requireClaim('a', () => true)], undefined],
    ['is required where no guard is: nothing', [], undefined],
  ])('is what %s, where the gate is on the route', async (_what, guards, scope) => {
    const app = appWith({}, ...guards);
    expect(await challenge(app)).toEqual([401, scope, undefined]);
    expect(await challenge(app, token({ claims: { exp: 1 } }))).toEqual([401, scope, undefined]);
  });

  it('is in the headers of the error that the app gets', async () => {
    const app = appWith({ refusals: 'next' }, requireScope('tools'));
    const headers: unknown[] = [];
    app.use((error: { headers: unknown }, _req: Request, res: express.Response, _next: unknown) => {
      headers.push(error.headers);
      res.sendStatus(401);
    });
    await request(app).post('/mcp').expect(401);
    expect(headers).toEqual([{ 'WWW-Authenticate': 'Bearer realm="api", scope="tools"' }]);
  });
});

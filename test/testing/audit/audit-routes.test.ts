import express from 'express';
import type { Express } from 'express';
import { ConfigurationError, protectedResourceMetadata, requireScope } from '../../../src/gate';
import { auditRoutes } from '../../../src/testing';
import { describeFinding } from '../../../src/testing/audit/audit-routes';
import { audit, documentOf, done, gate } from './sample';

const read = requireScope('orders:read');
const document = documentOf({ 'GET /v1/orders': ['orders:read'], 'GET /livez': null });

/** The sample app with one mistake. */
function app(write: (app: Express) => void): Express {
  const made = express();
  made.get('/livez', done);
  write(made);
  return made;
}

/** The correct sample app, with additions. */
function good(write: (app: Express) => void = () => {}): Express {
  return app((made) => {
    made.use('/v1', gate());
    made.get('/v1/orders', read, done);
    write(made);
  });
}

describe('auditRoutes()', () => {
  it.each([
    [
      'a route that is not documented',
      good((made) => made.delete('/v1/orders/:id', requireScope('orders:read'), done)),
      'undocumented-route',
      'DELETE /v1/orders/{id}',
      'the app has it, the document does not; document the operation, or remove the route',
    ],
    [
      'an operation without a route',
      app((made) => made.use('/v1', gate(), read)),
      'missing-route',
      'GET /v1/orders',
      'the document has it, the app does not; add the route, or remove the operation',
    ],
    [
      'a guard with another scope',
      app((made) => made.get('/v1/orders', gate(), requireScope('orders:read', 'orders:write'), done)),
      'wrong-requirement',
      'GET /v1/orders',
      'the app requires orders:read and orders:write, the document says orders:read; make them equal',
    ],
    [
      'any of two scopes for one',
      app((made) => made.get('/v1/orders', gate(), requireScope({ anyOf: ['orders:write', 'orders:read'] }), done)),
      'wrong-requirement',
      'GET /v1/orders',
      'the app requires orders:read or orders:write, the document says orders:read; make them equal',
    ],
    [
      'no guard after the gate',
      app((made) => made.get('/v1/orders', gate(), done)),
      'unguarded-route',
      'GET /v1/orders',
      'in the app every valid token reaches it, the document says orders:read; put requireScope() before its handler',
    ],
    [
      'no guard and no gate',
      app((made) => made.get('/v1/orders', done)),
      'unguarded-route',
      'GET /v1/orders',
      'nothing guards it in the app, the document says orders:read; put requireScope() before its handler',
    ],
    [
      'a guard after the handler',
      app((made) => made.get('/v1/orders', gate(), done, read)),
      'guard-after-handler',
      'GET /v1/orders',
      'in the app the guard for orders:read is after the handler; put it before',
    ],
    [
      'a guard on a public operation',
      good((made) => made.get('/livez', gate(), read, done)),
      'guarded-public-route',
      'GET /livez',
      'the app requires orders:read, the document says that it needs no token; remove the guard, or give the operation its security',
    ],
    [
      'a public operation after the gate',
      good((made) => made.get('/livez', gate(), done)),
      'guarded-public-route',
      'GET /livez',
      'in the app it is mounted after authenticate(), the document says that it needs no token; mount it before authenticate(), or give the operation its security',
    ],
    [
      'a guard without a gate before it',
      app((made) => made.get('/v1/orders', read, gate(), done)),
      'outside-gate',
      'GET /v1/orders',
      'in the app no authenticate() runs before its guard, so that every request gets 500; mount it first',
    ],
  ])('reports %s', (_what, made, kind, route, detail) => {
    const [method, path] = route.split(' ');
    const findings = auditRoutes(made, document).filter((finding) => finding.path !== '*');
    expect(findings).toEqual([{ kind, method, path, detail }]);
  });

  it.each([
    ['two scopes', [{ oauth2: ['orders:write', 'orders:read'] }], 'orders:read and orders:write'],
    ['a choice of scopes', [{ oauth2: ['orders:write'] }, { oauth2: ['orders:read'] }], 'orders:read or orders:write'],
    ['no scope', [{ oauth2: [] }], 'a token, whatever its scopes'],
  ])('reports an operation with %s for a guard with another one', (_what, security, said) => {
    const paths = { '/v1/orders': { get: { security } } };
    const made = express().use(gate()).get('/v1/orders', requireScope('orders:cancel'), done);
    const [found] = auditRoutes(made, { ...documentOf({}), paths });
    expect(found?.detail).toBe(`the app requires orders:cancel, the document says ${said}; make them equal`);
  });

  it('reports scopes that no route requires, and those that no client can have', () => {
    const made = good((more) => more.post('/v1/orders', requireScope('orders:write'), done));
    const operations = { 'GET /v1/orders': ['orders:read'], 'POST /v1/orders': ['orders:write'] };
    const contract = documentOf(operations, ['orders:read', 'orders:cancel']);
    const everywhere = { method: '*', path: '*' };
    const found = auditRoutes(made, contract, { ignore: ['/livez'] });
    expect(found.map(describeFinding)).toEqual(found.map(({ detail }) => detail));
    expect(found).toEqual([
      {
        ...{ kind: 'undeclared-scope', ...everywhere },
        detail:
          'scope orders:write: missing in components.securitySchemes of the document, so that no client may have it; declare it there with a description',
      },
      {
        ...{ kind: 'unused-scope', ...everywhere },
        detail:
          'scope orders:cancel: declared in components.securitySchemes of the document, but no operation uses it; use it, or remove it',
      },
    ]);
  });

  it('knows the path of the metadata middleware, and accepts an optional gate before a public operation', () => {
    const made = good((more) => {
      more.use(protectedResourceMetadata(gate({ resource: 'https://api.test' })));
      more.get('/v2/menu', gate({ optional: true }), done);
    });
    const contract = documentOf({
      'GET /v1/orders': ['orders:read'],
      'GET /livez': null,
      'GET /v2/menu': null,
      'GET /.well-known/oauth-protected-resource': null,
    });
    expect(audit(made, contract)).toEqual([]);
  });

  it('treats HEAD as part of GET, and ignores OPTIONS', () => {
    const made = good((more) => more.options('/{*any}', done).head('/livez', done));
    const contract = documentOf({
      'GET /v1/orders': ['orders:read'],
      'HEAD /v1/orders': ['orders:read'],
      'OPTIONS /v1/orders': null,
      'GET /livez': null,
    });
    expect(audit(made, contract)).toEqual([]);
  });
});

describe('the document of auditRoutes()', () => {
  const bare = { '/orders': { get: {} } };
  const oauth2 = { type: 'oauth2', flows: { authorizationCode: { scopes: { 'orders:read': '' } } } };

  it('may have a base path and a default security', () => {
    const made = app((more) => more.get('/v1/orders', gate(), read, done));
    const servers = [
      { url: 'https://{host}/{version}/', variables: { host: { default: 'a.test' }, version: { default: 'v1' } } },
    ];
    const components = { securitySchemes: { oauth2 } };
    const contract = { openapi: '3.0.3', servers, security: [{ oauth2: ['orders:read'] }], paths: bare, components };
    expect(audit(made, contract, { ignore: ['/livez'] })).toEqual([]);
    expect(audit(made, contract, { ignore: ['/livez'], basePath: '/' })).toEqual([
      'missing-route GET /orders',
      'undocumented-route GET /v1/orders',
    ]);
  });

  it('may have operations with other servers, or another kind of protection', () => {
    const made = express();
    made.get('/orders', done);
    const paths = { ...bare, '/connect/token': { servers: [{ url: 'https://login.test' }], post: {} } };
    const securitySchemes = { key: { type: 'apiKey' } };
    const contract = { openapi: '3.1.0', security: [{ key: [] }], paths, components: { securitySchemes } };
    expect(audit(made, contract)).toEqual([]);
  });

  it('must be bundled', () => {
    const contract = { openapi: '3.1.0', paths: { '/orders': { $ref: './orders.yaml' } } };
    expect(() => auditRoutes(express(), contract)).toThrow(
      './orders.yaml: leads to another file; bundle the document first',
    );
  });

  it('must be an OpenAPI 3 document', () => {
    expect(() => auditRoutes(express(), { swagger: '2.0' })).toThrow(ConfigurationError);
    expect(() => auditRoutes(express(), 'missing.yaml')).toThrow(/missing\.yaml: cannot be read: ENOENT/);
  });
});

describe('the arguments of auditRoutes()', () => {
  it('may be a router with its gate', () => {
    const router = express.Router().use('/v1', gate(), express.Router().get('/orders', read, done));
    expect(audit(router, documentOf({ 'GET /v1/orders': ['orders:read'] }))).toEqual([]);
  });

  it('may name paths to skip', () => {
    const made = good((more) => more.get('/docs', done).get('/docs/:file', done).get('/docsy', done));
    expect(audit(made, document, { ignore: ['/docs', '/docs/*'] })).toEqual(['undocumented-route GET /docsy']);
  });

  it.each([
    ['a listener', () => auditRoutes(() => {}, document), /expected an Express app or router/],
    ['a misspelt option', () => auditRoutes(good(), document, { basepath: '/v1' } as never), /did you mean "basePath"/],
    ['paths in a string', () => auditRoutes(good(), document, { ignore: '/x' } as never), /"ignore" must be an array/],
  ])('refuse %s', (_what, call, message) => {
    expect(call).toThrow(TypeError);
    expect(call).toThrow(message);
  });
});

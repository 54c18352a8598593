import { Router } from 'express';
import { requireScope } from '../../../src/gate';
import { commerceRouter } from '../../../src/app/commerce/router';
import { loadContract } from '../../../src/app/contract';
import { auditRoutes } from '../../../src/testing';
import { describeFinding } from '../../../src/testing/audit/audit-routes';
import { allOperations, loadDocument } from '../../../src/testing/openapi/document';
import type { ContractDocument } from '../../../src/testing/openapi/document';
import { gate } from '../audit/sample';

const original = loadDocument(loadContract());
const outside = Object.keys(original.paths).filter((path) => !path.startsWith('/v1/'));

/** The contract, changed in one place. */
function changed(change: (paths: Record<string, Record<string, Record<string, unknown>>>) => void): ContractDocument {
  const copy = structuredClone(original);
  change(copy.paths as never);
  return copy;
}

/** The scopes that it declares, to be changed. */
function scopesOf({ components }: ContractDocument): Record<string, string> {
  return components!.securitySchemes!['oauth2']!.flows!['clientCredentials']!.scopes as Record<string, string>;
}

const placeholders = commerceRouter(loadContract());
/** What is compared: the router below `/v1`, after a gate. */
function disagreements(document: ContractDocument, router = placeholders): string[] {
  const app = Router().use('/v1', gate(), router);
  return auditRoutes(app, document, { basePath: '/', ignore: outside }).map(describeFinding);
}

describe('the placeholders and openapi.yaml', () => {
  it('agree', () => {
    expect(disagreements(original)).toEqual([]);
  });

  it('disagree about a route that is not documented', () => {
    const document = changed((paths) => delete paths['/v1/orders/{id}/cancel']);
    expect(disagreements(document)).toEqual([
      'POST /v1/orders/{id}/cancel: the app has it, the document does not; document the operation, or remove the route',
      'scope orders:cancel: declared in components.securitySchemes of the document, but no operation uses it; use it, or remove it',
    ]);
  });

  it.each([
    ['another scope', [{ oauth2: ['orders:read'] }], 'orders:read'],
    ['one scope more', [{ oauth2: ['orders:write', 'orders:read'] }], 'orders:read and orders:write'],
    ['a choice of scopes', [{ oauth2: ['orders:write'] }, { oauth2: ['orders:read'] }], 'orders:read or orders:write'],
    ['no scope', [{ oauth2: [] }], 'a token, whatever its scopes'],
  ])('disagree about a route that is documented with %s', (_what, security, said) => {
    const document = changed((paths) => (paths['/v1/orders']!['post']!['security'] = security));
    expect(disagreements(document)).toEqual([
      `POST /v1/orders: the app requires orders:write, the document says ${said}; make them equal`,
    ]);
  });

  it.each([
    ['no requirement', []],
    ['an empty one', [{}]],
    ['a choice between a token and nothing', [{ oauth2: ['orders:write'] }, {}]],
  ])('disagree about a route that is documented without a token, with %s', (_what, security) => {
    const document = changed((paths) => (paths['/v1/orders']!['post']!['security'] = security));
    expect(disagreements(document)).toEqual([
      'POST /v1/orders: the app requires orders:write, the document says that it needs no token; remove the guard, or give the operation its security',
    ]);
  });

  it('disagree about a scope that is not declared', () => {
    const document = structuredClone(original);
    delete scopesOf(document)['orders:cancel'];
    expect(disagreements(document)).toEqual([
      'scope orders:cancel: missing in components.securitySchemes of the document, so that no client may have it; declare it there with a description',
    ]);
  });

  it('disagree about a declared scope that no route requires', () => {
    const document = structuredClone(original);
    Object.assign(scopesOf(document), { 'x:read': 'X' });
    expect(disagreements(document)).toEqual([
      'scope x:read: declared in components.securitySchemes of the document, but no operation uses it; use it, or remove it',
    ]);
  });

  it('agree about the parameters of a path', () => {
    const described = allOperations(original).map(({ path, parameters }) => [
      [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name),
      parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name),
    ]);
    expect(described.map(([inPath]) => inPath)).toEqual(described.map(([, names]) => names));
  });
});

describe('one router and its part of openapi.yaml', () => {
  const done = (): void => {};
  const ofTables = changed((paths) => {
    for (const path of Object.keys(paths)) if (!path.startsWith('/v1/tables')) delete paths[path];
  });
  const scopes = scopesOf(ofTables);
  for (const scope of Object.keys(scopes)) if (!scope.startsWith('tables:')) delete scopes[scope];

  function tablesRouter(write: (tables: Router) => void): string[] {
    const tables = Router();
    tables.get('/', requireScope('tables:read'), done);
    tables.get('/:id', requireScope('tables:read'), done);
    tables.patch('/:id', requireScope('tables:write'), done);
    tables.delete('/:id', requireScope('tables:write'), done);
    write(tables);
    return disagreements(ofTables, Router().use('/tables', tables));
  }

  it('agree when every route has its guard', () => {
    expect(tablesRouter((tables) => tables.post('/', requireScope('tables:write'), done))).toEqual([]);
  });

  it('disagree about a route without a guard', () => {
    expect(tablesRouter((tables) => tables.post('/', done))).toEqual([
      'POST /v1/tables: in the app every valid token reaches it, the document says tables:write; put requireScope() before its handler',
    ]);
  });

  it('disagree about a guard with the wrong scope', () => {
    expect(tablesRouter((tables) => tables.post('/', requireScope('tables:read'), done))).toEqual([
      'POST /v1/tables: the app requires tables:read, the document says tables:write; make them equal',
    ]);
  });

  it('disagree about a missing route and an undocumented one', () => {
    expect(tablesRouter((tables) => tables.post('/:id/wipe', requireScope('tables:write'), done))).toEqual([
      'POST /v1/tables: the document has it, the app does not; add the route, or remove the operation',
      'POST /v1/tables/{id}/wipe: the app has it, the document does not; document the operation, or remove the route',
    ]);
  });
});

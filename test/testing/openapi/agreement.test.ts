import { Router } from 'express';
import { ConfigurationError, requireScope } from '../../../src/gate';
import { commerceRouter } from '../../../src/app/commerce/router';
import { loadContract as contractOfTheApp } from '../../../src/app/contract';
import { assertAgreement, findDisagreements } from '../../../src/testing/audit/audit';
import { loadContract, operationsOf } from '../../../src/testing/openapi/document';
import type { ContractDocument } from '../../../src/testing/openapi/document';

const original = loadContract();

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

const names = { source: 'the app', document: 'openapi.yaml' };
/** What is compared: the router below `/v1`, after a gate. */
function agreement(document: ContractDocument) {
  return { names, document, operations: operationsOf(document), mountedAt: '/v1', behindGate: 'strict' as const };
}

const placeholders = commerceRouter(contractOfTheApp());
function disagreements(document: ContractDocument, router = placeholders): string[] {
  return findDisagreements(router, agreement(document));
}

describe('the placeholders and openapi.yaml', () => {
  it('agree', () => {
    expect(disagreements(original)).toEqual([]);
    expect(() => assertAgreement(placeholders, agreement(original))).not.toThrow();
  });

  it('disagree about a route that is not documented', () => {
    const document = changed((paths) => delete paths['/v1/orders/{id}/cancel']);
    expect(disagreements(document)).toEqual([
      'POST /v1/orders/{id}/cancel: the app has it, openapi.yaml does not; document the operation, or remove the route',
      'scope orders:cancel: declared in components.securitySchemes of openapi.yaml, but no operation uses it; use it, or remove it',
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
      `POST /v1/orders: the app requires orders:write, openapi.yaml says ${said}; make them equal`,
    ]);
  });

  it.each([
    ['no requirement', []],
    ['an empty one', [{}]],
    ['a choice between a token and nothing', [{ oauth2: ['orders:write'] }, {}]],
  ])('disagree about a route that is documented without a token, with %s', (_what, security) => {
    const document = changed((paths) => (paths['/v1/orders']!['post']!['security'] = security));
    expect(disagreements(document)).toEqual([
      'POST /v1/orders: the app requires orders:write, openapi.yaml says that it needs no token; remove the guard, or give the operation its security',
    ]);
  });

  it('disagree about a scope that is not declared', () => {
    const document = structuredClone(original);
    delete scopesOf(document)['orders:cancel'];
    expect(disagreements(document)).toEqual([
      'scope orders:cancel: missing in components.securitySchemes of openapi.yaml, so that no client may have it; declare it there with a description',
    ]);
  });

  it('disagree about a declared scope that no route requires', () => {
    const document = structuredClone(original);
    Object.assign(scopesOf(document), { 'x:read': 'X' });
    expect(disagreements(document)).toEqual([
      'scope x:read: declared in components.securitySchemes of openapi.yaml, but no operation uses it; use it, or remove it',
    ]);
  });

  it('disagree about path parameters', () => {
    const document = changed((paths) => {
      delete paths['/v1/tables/{id}']!['parameters'];
      const { '/v1/menus/{id}': menu } = paths;
      delete paths['/v1/menus/{id}'];
      paths['/v1/menus/{menu_id}'] = menu!;
    });
    const found = disagreements(document);
    expect(found).toContain(
      'GET /v1/tables/{id}: openapi.yaml does not describe the path parameter id; add it to its parameters',
    );
    expect(found).toContain(
      'GET /v1/menus/{menu_id}: openapi.yaml describes the path parameter id, which is not in the path; remove it',
    );
  });

  it('stop the start with all disagreements', () => {
    const document = changed((paths) => {
      delete paths['/v1/checks/{id}/close'];
      paths['/v1/items']!['get']!['security'] = [];
    });
    expect(() => assertAgreement(placeholders, agreement(document))).toThrow(ConfigurationError);
    expect(() => assertAgreement(placeholders, agreement(document))).toThrow(
      /checks\/\{id\}\/close: (.|\n)*GET \/v1\/items: /,
    );
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
      'POST /v1/tables: in the app every valid token reaches it, openapi.yaml says tables:write; put requireScope() before its handler',
    ]);
  });

  it('disagree about a guard with the wrong scope', () => {
    expect(tablesRouter((tables) => tables.post('/', requireScope('tables:read'), done))).toEqual([
      'POST /v1/tables: the app requires tables:read, openapi.yaml says tables:write; make them equal',
    ]);
  });

  it('disagree about a missing route and an undocumented one', () => {
    expect(tablesRouter((tables) => tables.post('/:id/wipe', requireScope('tables:write'), done))).toEqual([
      'POST /v1/tables: openapi.yaml has it, the app does not; add the route, or remove the operation',
      'POST /v1/tables/{id}/wipe: the app has it, openapi.yaml does not; document the operation, or remove the route',
    ]);
  });
});

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Router } from 'express';
import { requireScope, ConfigurationError } from '../../../src/gate';
import { describeRoutes } from '../../../src/testing/audit/app-routes';
import { describeAlternatives, loadDocument } from '../../../src/testing/openapi/document';
import { isCatchAll, templatesOf } from '../../../src/testing/openapi/path-template';

const done = (): void => {};
const read = requireScope('a:read');
const write = requireScope('a:write');

/** `GET /v1/a: a:read`, one line per route. */
function described(router: Router): string[] {
  const { routes } = describeRoutes(Router().use('/v1', router));
  return routes.map(({ method, path, requires }) => `${method} ${path}: ${describeAlternatives(requires)}`);
}

describe('describeRoutes()', () => {
  it('reads several guards as all of their scopes, and alternatives as alternatives', () => {
    const router = Router();
    router.get('/both', write, read, done);
    router.get('/list', requireScope(['b', 'a']), done);
    router.get('/any', requireScope({ anyOf: ['b', 'a'] }), done);
    router.get('/mixed', requireScope({ anyOf: ['a', 'b'] }), requireScope('c'), done);
    expect(described(router)).toEqual([
      'GET /v1/both: a:read and a:write',
      'GET /v1/list: a and b',
      'GET /v1/any: a or b',
      'GET /v1/mixed: a and c or b and c',
    ]);
  });

  it('reads every path of a route with several', () => {
    const router = Router();
    router.get(['/a', '/b'], read, done);
    expect(described(router)).toEqual(['GET /v1/a: a:read', 'GET /v1/b: a:read']);
  });
});

describe('templatesOf() of Express 5', () => {
  it.each([
    ['/', ['']],
    ['/orders', ['/orders']],
    ['/orders/', ['/orders']],
    ['/orders/:id/lines/:line_no', ['/orders/{id}/lines/{line_no}']],
    ['/:"order id"', ['/{order id}']],
    ['/files/*path', ['/files/{path}']],
    ['/orders{/:id}', ['/orders', '/orders/{id}']],
    ['/a{/b{/:c}}/d', ['/a/d', '/a/b/d', '/a/b/{c}/d']],
    ['/:from-:to', ['/{from}-{to}']],
    ['/orders\\:cancel', ['/orders:cancel']],
    ['/{*rest}', ['', '/{rest}']],
  ])('writes %s as %j', (path, templates) => {
    expect(templatesOf(path, false)).toEqual(templates);
  });
});

describe('templatesOf() of Express 4', () => {
  it.each([
    ['/', ['']],
    ['/orders/:id', ['/orders/{id}']],
    ['/orders/:id(\\d+)/lines', ['/orders/{id}/lines']],
    ['/orders/:id?', ['/orders', '/orders/{id}']],
    ['/:a?/b/:c(x|y)?', ['/b', '/b/{c}', '/{a}/b', '/{a}/b/{c}']],
    ['/files/*', ['/files/{*}']],
    ['/orders/:id\\:cancel', ['/orders/{id}:cancel']],
  ])('writes %s as %j', (path, templates) => {
    expect([...(templatesOf(path, true) ?? [])].sort()).toEqual(templates);
  });

  it('does not convert a regular expression', () => {
    expect(templatesOf(/^\/orders/, true)).toBeUndefined();
  });
});

describe('isCatchAll()', () => {
  it.each([['*'], ['/*'], ['/*rest'], ['/{*rest}'], ['{/*rest}'], [/.*/], [/^\/.*$/]])('recognises %s', (path) => {
    expect(isCatchAll(path)).toBe(true);
  });

  it.each([['/'], ['/v1/*rest'], ['/:any'], [/^\/v1\/.*/]])('does not recognise %s', (path) => {
    expect(isCatchAll(path)).toBe(false);
  });
});

describe('loadDocument()', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tillgate-contract-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  function file(text: string): string {
    const path = join(folder, 'openapi.yaml');
    writeFileSync(path, text);
    return path;
  }

  it('reads a file', () => {
    expect(loadDocument(file('openapi: 3.1.1\npaths: {}')).paths).toEqual({});
  });

  it.each([
    ['is not there', undefined, /missing\.yaml: cannot be read: ENOENT/],
    ['is not YAML', '{ a: [', /openapi\.yaml: cannot be read: /],
    ['is empty', '', /expected an OpenAPI 3 document/],
    ['is of another version', 'openapi: 2.0.0\npaths: {}', /expected an OpenAPI 3 document/],
    ['has no paths', 'openapi: 3.1.0', /expected an OpenAPI 3 document/],
  ])('refuses a document that %s', (_what, text, message) => {
    const path = text === undefined ? join(folder, 'missing.yaml') : file(text);
    expect(() => loadDocument(path)).toThrow(ConfigurationError);
    expect(() => loadDocument(path)).toThrow(message);
  });
});

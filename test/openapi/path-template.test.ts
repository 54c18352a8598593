import { isCatchAll, templatesOf } from '../../src/openapi/path-template';

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

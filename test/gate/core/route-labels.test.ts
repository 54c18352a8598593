import { RouteLabels } from '../../../src/gate/core/route-labels';

describe('RouteLabels', () => {
  const made = (count: number, of: (index: number) => string | undefined): (string | undefined)[] =>
    Array.from({ length: count }, (_, index) => of(index));

  it('keeps 40 prefixes of a route, and names the others by its own path', () => {
    const labels = new RouteLabels();
    const got = made(300, (shop) => labels.of(`/shops/${shop}/orders`, '/orders', true));
    expect(got.slice(0, 40)).toEqual(made(40, (shop) => `/shops/${shop}/orders`));
    expect(new Set(got.slice(40))).toEqual(new Set(['*/orders']));
    expect(labels.of('/shops/7/orders', '/orders', false)).toBe('/shops/7/orders');
    expect(labels.of('/v1/items/:id', '/v1/items/:id', true)).toBe('/v1/items/:id');
  });

  it('names further routes by their own path once it has 300', () => {
    const labels = new RouteLabels();
    const got = made(310, (index) => labels.of(`/a/r${index}`, `/r${index}`, true));
    expect(got.slice(299, 302)).toEqual(['/a/r299', '*/r300', '*/r301']);
    expect(labels.of('/b/r300', '/r300', true)).toBe('*/r300');
  });

  it('adds nothing for a request that must not', () => {
    const labels = new RouteLabels();
    expect(labels.of('/shops/1/orders', '/orders', false)).toBeUndefined();
    made(41, (shop) => labels.of(`/shops/${shop}/orders`, '/orders', true));
    expect(labels.of('/shops/99/orders', '/orders', false)).toBe('*/orders');
    expect(labels.of('/shops/99/items', '/items', false)).toBeUndefined();
  });

  it.each([undefined, '', '/other', /x/])('takes a route without a path of its own (%s) as all prefix', (own) => {
    const labels = new RouteLabels();
    const got = made(50, (file) => labels.of(`GET /files/${file}`, own, true));
    expect([got[39], got[40], got[49]]).toEqual(['GET /files/39', '*', '*']);
  });
});

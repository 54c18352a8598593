import { comparableUrl, requestUrl } from '../../../src/token/possession/request';

describe('comparableUrl(): two URLs are the same for htu when these are', () => {
  it.each([
    ['https://api.test/orders?since=1#x', 'https://api.test/orders'],
    ['https://api.test/orders/?x', 'https://api.test/orders/'],
    ['https://api.test', 'https://api.test/'],
    ['HTTPS://USER:PASS@API.TEST:443/a/../Orders/./b', 'https://api.test/Orders/b'],
    ['http://api.test:80/x', 'http://api.test/x'],
    ['https://api.test:8443/x', 'https://api.test:8443/x'],
    ['http://127.0.0.1:4000/x', 'http://127.0.0.1:4000/x'],
    ['http://[2001:DB8::1]:3000/x', 'http://[2001:db8::1]:3000/x'],
    ['https://b\u00fccher.test/x', 'https://xn--bcher-kva.test/x'],
    ['https://api.test./x', 'https://api.test./x'],
    ['https://api.test/%7euser/a%2fb/%e2%82%ac', 'https://api.test/~user/a%2Fb/%E2%82%AC'],
    ['https://api.test/a/%2e%2e/b', 'https://api.test/b'],
    ['https://api.test//a', 'https://api.test//a'],
    ['https://api.test/100%', 'https://api.test/100%'],
  ])('%s', (url, expected) => {
    expect(comparableUrl(url)).toBe(expected);
  });

  it.each([
    '',
    '/orders',
    'api.test/x',
    ':://x',
    'ftp://api.test/x',
    'javascript:x',
    'https://api.test:999999/',
    'https://[::1/x',
  ])('not an http(s) URL: %p', (url) => {
    expect(comparableUrl(url)).toBeUndefined();
  });
});

describe('requestUrl(): the URL of a request below the public URL of the app', () => {
  it.each([
    ['https://api.test', '/orders?x=1', 'https://api.test/orders'],
    ['https://api.test/shop', '/orders', 'https://api.test/shop/orders'],
    ['https://api.test', '//evil.test/x', 'https://api.test//evil.test/x'],
    ['https://api.test', '/https://evil.test/x', 'https://api.test/https://evil.test/x'],
    ['https://api.test', '/a..b/...', 'https://api.test/a..b/...'],
  ])('%s and %s', (baseUrl, target, expected) => {
    expect(requestUrl(baseUrl, target)).toBe(expected);
  });

  it.each(['*', '', 'http://api.test/orders', '@evil.test/', '/../x', '/a/.', '/a/%2E%2e', '/./a'])(
    'none for the target %p',
    (target) => {
      expect(requestUrl('https://api.test', target)).toBeUndefined();
    },
  );
});

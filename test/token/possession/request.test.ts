import { isUrlOf } from '../../../src/token/possession/dpop-proof';

const BASE = 'https://api.test';

describe('isUrlOf(): htu in any spelling of the URL of the request', () => {
  it.each([
    ['https://api.test/orders?since=1#x', BASE, '/orders'],
    ['https://api.test/orders/?x', BASE, '/orders/'],
    ['https://api.test', BASE, '/'],
    ['HTTPS://USER:PASS@API.TEST:443/a/../Orders/./b', BASE, '/Orders/b?x=1'],
    ['http://api.test:80/x', 'http://api.test', '/x'],
    ['https://api.test:8443/x', 'https://api.test:8443', '/x'],
    ['http://127.0.0.1:4000/x', 'http://127.0.0.1:4000', '/x'],
    ['http://[2001:DB8::1]:3000/x', 'http://[2001:db8::1]:3000', '/x'],
    ['https://b\u00fccher.test/x', 'https://xn--bcher-kva.test', '/x'],
    ['https://api.test./x', 'https://api.test.', '/x'],
    ['https://api.test/%7euser/a%2fb/%e2%82%ac', BASE, '/~user/a%2Fb/%E2%82%AC'],
    ['https://api.test/a%2Fb', BASE, '/a%2fb'],
    ['https://api.test/\u20ac', BASE, '/%e2%82%ac'],
    ['https://api.test/%7Euser', BASE, '/%7euser'],
    ['https://api.test/a/%2e%2e/b', BASE, '/b'],
    ['https://api.test/a\\b', BASE, '/a/b'],
    ['https://api.test/100%', BASE, '/100%'],
    ['https://api.test/shop/orders', 'https://api.test/shop', '/orders'],
    ['https://api.test//evil.test/x', BASE, '//evil.test/x'],
    ['https://api.test/https://evil.test/x', BASE, '/https://evil.test/x'],
    ['https://api.test/a..b/...', BASE, '/a..b/...'],
    ['https://api.test/{x}|"', BASE, '/{x}|"'],
  ])('%s at %s for %s', (htu, baseUrl, target) => {
    expect(isUrlOf(htu, baseUrl, target)).toBe(true);
  });
});

describe('isUrlOf(): not the URL of the request', () => {
  it.each([
    ['', '/orders'],
    ['/orders', '/orders'],
    ['api.test/orders', '/orders'],
    [':://x', '/orders'],
    ['ftp://api.test/orders', '/orders'],
    ['javascript:x', '/orders'],
    ['https://api.test:999999/orders', '/orders'],
    ['https://[::1/orders', '/orders'],
    ['http://api.test/orders', '/orders'],
    ['https://other.test/orders', '/orders'],
    ['https://api.test:8443/orders', '/orders'],
    ['https://api.test/Orders', '/orders'],
    ['https://api.test/orders/', '/orders'],
    ['https://api.test/a/b', '/a%2Fb'],
    ['https://api.test/a', '//a'],
  ])('%p for %p', (htu, target) => {
    expect(isUrlOf(htu, BASE, target)).toBe(false);
  });

  // Express matches the characters that were sent, so these are other paths than /a/b.
  it.each(['/a/%62', '/%61/b', '/x/../a/b', '/x/%2E%2e/a/b', '/./a/b', '/a/b/.', '/a\\b', '/x\\..\\a/b', '/a/b#'])(
    'the proof for /a/b is none for the target %p',
    (target) => {
      expect(isUrlOf('https://api.test/a/b', BASE, target)).toBe(false);
    },
  );

  it.each(['*', '', 'http://api.test/a', '@evil.test/', '/\t', '/\u00e9', '/\u007f', '/ ', '/..', '/\\'])(
    'nothing is the URL of the target %p',
    (target) => {
      expect(isUrlOf(BASE + target, BASE, target)).toBe(false);
      expect(isUrlOf(target, BASE, target)).toBe(false);
      expect(isUrlOf('x', BASE, target)).toBe(false);
    },
  );

  it('two URLs that are none are not equal', () => {
    expect(isUrlOf('x', 'x', '/')).toBe(false);
  });
});

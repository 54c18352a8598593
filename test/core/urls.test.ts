import { isLoopbackHost, isSecureUrl } from '../../src/core/urls';

describe('isLoopbackHost', () => {
  it.each(['localhost', 'LOCALHOST', 'api.localhost', '127.0.0.1', '127.9.9.9', '::1', '[::1]'])('%s is', (host) => {
    expect(isLoopbackHost(host)).toBe(true);
  });

  it.each(['localhost.example.com', 'mylocalhost', '128.0.0.1', '127.0.0.1.example.com', '0.0.0.0', '::', '10.0.0.1'])(
    '%s is not',
    (host) => {
      expect(isLoopbackHost(host)).toBe(false);
    },
  );
});

describe('isSecureUrl', () => {
  it.each([
    ['https://login.example.com', true],
    ['http://127.0.0.1:4000', true],
    ['http://0x7f.1/', true],
    ['http://login.example.com', false],
    ['redis://cache:6379', true],
  ])('%s: %s', (url, secure) => {
    expect(isSecureUrl(url)).toBe(secure);
  });
});

import { hasUserInfo, isLoopbackHost, isSecureUrl, loggableUrl } from '../../src/core/urls';

describe('isLoopbackHost', () => {
  it.each(['localhost', 'LOCALHOST', '127.0.0.1', '127.9.9.9', '::1', '[::1]'])('%s is', (host) => {
    expect(isLoopbackHost(host)).toBe(true);
  });

  it.each([
    'api.localhost',
    '.localhost',
    'localhost.example.com',
    'mylocalhost',
    '128.0.0.1',
    '127.0.0.1.example.com',
    '0.0.0.0',
    '::',
    '10.0.0.1',
  ])('%s is not', (host) => {
    expect(isLoopbackHost(host)).toBe(false);
  });
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

describe('loggableUrl', () => {
  it.each([
    ['https://login.example.com', 'https://login.example.com'],
    ['https://login.example.com/jwks', 'https://login.example.com/jwks'],
    ['https://user:secret@login.example.com/jwks', 'https://login.example.com/jwks'],
    ['https://:secret@login.example.com:8443/jwks', 'https://login.example.com:8443/jwks'],
    ['https:user:secret@login.example.com/jwks', 'https://login.example.com/jwks'],
    ['https:\\\\user:secret@login.example.com/jwks', 'https://login.example.com/jwks'],
    ['https://login.example.com/jwks?key=secret', 'https://login.example.com/jwks'],
    ['https://login.example.com/jwks#secret', 'https://login.example.com/jwks'],
    ['redis://:secret@cache:6379/1', 'redis://cache:6379/1'],
    ['postgres://user:secret@db/floors?password=secret', 'postgres://db/floors'],
    ['http://user:secret@login example/jwks?key=secret', 'login example/jwks'],
    ['http://user:sec@ret@login.example.com:port?key=secret', 'login.example.com:port'],
  ])('%s: %s', (url, shown) => {
    expect(loggableUrl(url)).toBe(shown);
  });
});

describe('hasUserInfo', () => {
  it.each([
    ['https://login.example.com/@jwks', false],
    ['https://user@login.example.com', true],
    ['https://:secret@login.example.com', true],
  ])('%s: %s', (url, has) => {
    expect(hasUserInfo(url)).toBe(has);
  });
});

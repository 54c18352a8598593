import { hasUserInfo, isHttpUrl, isLoopbackHost, isSecureUrl, loggableUrl } from '../../../src/gate/core/urls';
import { loggablePath, consoleLogger } from '../../../src/gate/core/logger';

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

describe('isHttpUrl', () => {
  it('accepts a host with Latin-1 letters every time, also when it is called often', () => {
    const refused = Array.from({ length: 50_000 }, () => isHttpUrl('https://caf\u00e9.example.com/keys')).indexOf(
      false,
    );
    expect(refused).toBe(-1);
  });

  it.each(['ftp://example.com', 'https://', 'https://[::1', '/path', ''])('refuses %j', (text) => {
    expect(isHttpUrl(text)).toBe(false);
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

const HEADER = 'eyJ0eXAiOiJhdCtqd3QiLCJhbGciOiJFUzI1NiJ9';
const PAYLOAD = `eyJ${'a'.repeat(200)}`;
const SIGNATURE = 'b'.repeat(86);
const TOKEN = `${HEADER}.${PAYLOAD}.${SIGNATURE}`;

describe('loggablePath', () => {
  it.each([
    ['/v1/orders', '/v1/orders'],
    ['/v1/orders/ord_0001?access_token=x', '/v1/orders/ord_0001'],
    ['/v1/orders#access_token=x', '/v1/orders'],
    ['/', '/'],
    ['', ''],
    ['*', '*'],
    ['//v1//orders', '//v1//orders'],
    ['/v1/money-transfers/key-12345678', '/v1/money-transfers/key-12345678'],
    [`/v1/${'x'.repeat(64)}`, `/v1/${'x'.repeat(64)}`],
    [`/v1/${'x'.repeat(65)}/lines`, '/v1/[65]/lines'],
    ['http://api.test/v1/orders?x', '/v1/orders'],
    ['http://user:secret@api.test/v1/orders', '/v1/orders'],
    ['HTTP://api.test?access_token=x', ''],
    ['/v1/orders/eyJhbGciOiJub25lIn0.e30.', '/v1/orders/[token]'],
    ['/v1/orders;t=eyJhbGciOiJub25lIn0', '/v1/orders;t=[token]'],
  ])('shows %j as %j', (target, shown) => {
    expect(loggablePath(target)).toBe(shown);
  });

  it.each([
    ['as it is', TOKEN],
    ['with encoded points', TOKEN.replaceAll('.', '%2E')],
    ['with an encoded beginning', TOKEN.replaceAll('eyJ', '%65%79J')],
    ['as three segments', TOKEN.replaceAll('.', '/')],
    ['after many segments', `${'a/'.repeat(250)}${TOKEN}`],
    ['as a host', `//${TOKEN}`],
  ])('shows nothing of a token in the path: %s', (_how, token) => {
    const shown = loggablePath(`/v1/orders/${token}`);
    for (const part of [HEADER, PAYLOAD, SIGNATURE]) expect(shown).not.toContain(part.slice(0, 20));
  });

  it('truncates to 512 characters, in linear time', () => {
    expect(loggablePath(`/${'a/'.repeat(8_000)}`)).toHaveLength(512);
  });
});

describe('the console logger', () => {
  it.each(['warn', 'error'] as const)('%s writes one line of ASCII for any fields', (level) => {
    const written = jest.spyOn(console, level).mockImplementation(() => undefined);
    try {
      consoleLogger[level]({ kid: 'a\r\n\u009b2J\u2028\u202e\u{1f511}' }, 'a key is ignored');
      expect(written.mock.calls).toEqual([
        [String.raw`tillgate: a key is ignored {"kid":"a\r\n\u009b2J\u2028\u202e\ud83d\udd11"}`],
      ]);
    } finally {
      written.mockRestore();
    }
  });
});

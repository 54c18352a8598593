import { generationsFromUrl } from '../../src/generation/from-url';

describe('generationsFromUrl()', () => {
  it.each(['http://127.0.0.1:4000', 'https://login.example/generations', 'HTTPS://login.example'])(
    'makes a source of %s',
    async (url) => {
      const source = generationsFromUrl(url, { fetch: () => Promise.reject(new Error('down')), clock: Date.now });
      await expect(source.reader().next(0)).rejects.toThrow(/generations could not be fetched$/);
    },
  );

  it('refuses http: on another host', () => {
    expect(() => generationsFromUrl('http://pos:hunter2@login.example')).toThrow(/must be https:/);
    expect(generationsFromUrl('http://login.example', { allowHttp: true })).toHaveProperty('reader');
  });

  it.each([
    ['mysql://pos:hunter2@db', 'got "mysql:"'],
    ['login.example', 'got a URL without a scheme'],
    ['', 'got a URL without a scheme'],
    ['1mysql:x', 'got a URL without a scheme'],
    ['__proto__:x', 'got a URL without a scheme'],
    ['constructor:x', 'got "constructor:"'],
  ])('refuses %j and names what is accepted', (url, got) => {
    const expected = `generations: expected an http(s):, redis(s): or postgres: URL, ${got}`;
    expect(() => generationsFromUrl(url)).toThrow(new TypeError(expected));
  });
});

import { generationsFromUrl } from '../../../src/generation/from-url';
import { httpGenerations } from '../../../src/generation/http/source';
import type { HttpGenerationsOptions } from '../../../src/generation/http/source';

/** What a source sends, and what comes out when it fails. */
async function sent(options: HttpGenerationsOptions): Promise<{ url: string; headers: unknown; message: string }> {
  let seen: [string, unknown] = ['', undefined];
  const source = httpGenerations({
    ...options,
    fetch: (url, { headers }) => {
      seen = [url, headers];
      return Promise.reject(new Error('connect https://pos:hunter2@login.example failed'));
    },
  });
  const message = await source.read(0).then(
    () => 'no failure',
    (error: Error) => error.message,
  );
  return { url: seen[0], headers: seen[1], message };
}

function messageOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof TypeError) return error.message;
    throw error;
  }
  return 'no TypeError';
}

describe('httpGenerations', () => {
  it('sends credentials of the address as Basic, and shows them nowhere', async () => {
    const { url, headers, message } = await sent({ url: 'https://pos%3A1:hunter2%C3%A4@login.example?key=hunter3' });
    const authorization = `Basic ${Buffer.from('pos:1:hunter2ä').toString('base64')}`;
    expect(headers).toMatchObject({ authorization });
    expect(url).toBe('https://login.example/generations?key=hunter3&since=0');
    expect(message).toBe('GET https://login.example/generations: Error');
  });

  it.each([
    ['http: on loopback', { url: 'http://127.0.0.1:4000' }, 'http://127.0.0.1:4000/generations?since=0'],
    [
      'http: elsewhere with allowHttp',
      { url: 'http://a.example', allowHttp: true },
      'http://a.example/generations?since=0',
    ],
  ])('accepts %s', async (_, options, url) => {
    expect((await sent(options)).url).toBe(url);
  });

  it('refuses http: on another host for a URL too', () => {
    expect(messageOf(() => generationsFromUrl('http://pos:hunter2@login.example'))).toMatch(/must be https:/);
    expect(generationsFromUrl('http://login.example', { allowHttp: true })).toHaveProperty('read');
  });

  it('sends the headers that it was given', async () => {
    const { headers } = await sent({
      url: 'https://login.example',
      headers: { Authorization: 'Bearer abc', 'X-A': '1' },
    });
    expect(headers).toMatchObject({ authorization: 'Bearer abc', 'x-a': '1' });
  });

  it.each<[string, unknown, RegExp]>([
    ['no options', undefined, /expected an options object/],
    ['no url', {}, /"url" must be an absolute http: or https: URL/],
    ['a url of another type', { url: 5 }, /"url" must be a non-empty string/],
    ['a relative url', { url: '/generations' }, /"url" must be an absolute/],
    ['another scheme', { url: 'ftp://pos:hunter2@login.example' }, /"url" must be an absolute/],
    ['a broken url', { url: 'https://pos:hunter2@' }, /"url" must be an absolute/],
    [
      'http: on another host',
      { url: 'http://pos:hunter2@login.example' },
      /"url" must be https: .* or with allowHttp: true/,
    ],
    ['allowHttp of another type', { url: 'https://a.example', allowHttp: 'yes' }, /"allowHttp" must be true or false/],
    ['a fragment', { url: 'https://pos:hunter2@login.example/#a' }, /without a fragment/],
    ['credentials that are not encoded', { url: 'https://pos:%hunter2@login.example' }, /must be percent-encoded/],
    ['headers as a list', { url: 'https://a.example', headers: ['hunter2'] }, /"headers" must be an object/],
    [
      'a header that is not a string',
      { url: 'https://a.example', headers: { 'x-a': 5 } },
      /no valid header under "x-a"/,
    ],
    [
      'a line break',
      { url: 'https://a.example', headers: { 'x-a': 'hunter2\r\n' + 'x: y' } },
      /no valid header under "x-a"/,
    ],
    [
      'a header name with a space',
      { url: 'https://a.example', headers: { 'x a': 'b' } },
      /no valid header under "x a"/,
    ],
    [
      'credentials twice',
      { url: 'https://pos:hunter2@a.example', headers: { authorization: 'Bearer hunter2' } },
      /exclude each other/,
    ],
    ['a fetch that is none', { url: 'https://a.example', fetch: 'fetch' }, /"fetch" must be a function/],
    ['a time of 0', { url: 'https://a.example', timeoutMs: 0 }, /"timeoutMs" must be a number of ms/],
    ['a misspelt option', { url: 'https://a.example', timeout: 5 }, /did you mean "timeoutMs"/],
  ])('refuses %s', (_, options, expected) => {
    const message = messageOf(() => httpGenerations(options as HttpGenerationsOptions));
    expect(message).toMatch(expected);
    expect(message).not.toContain('hunter2');
  });

  it('does not publish', () => {
    expect(httpGenerations({ url: 'https://a.example' })).not.toHaveProperty('publish');
  });
});

describe('generationsFromUrl', () => {
  it.each(['http://127.0.0.1:4000', 'https://login.example/generations', 'HTTPS://login.example'])(
    'makes a source of %s',
    async (url) => {
      const source = generationsFromUrl(url, { fetch: () => Promise.reject(new Error('down')) });
      await expect(source.read(0)).rejects.toThrow(/generations: Error$/);
    },
  );

  it('passes on what the source needs, and nothing else', () => {
    const more = { random: Math.random, clock: Date.now };
    expect(() => generationsFromUrl('https://login.example', more)).not.toThrow();
  });

  it.each([
    ['mysql://pos:hunter2@db', 'got "mysql:"'],
    ['login.example', 'got a URL without a scheme'],
    ['', 'got a URL without a scheme'],
    ['__proto__:x', 'got a URL without a scheme'],
    ['constructor:x', 'got "constructor:"'],
  ])('refuses %j and names what is accepted', (url, got) => {
    const message = messageOf(() => generationsFromUrl(url));
    expect(message).toBe(`generations: expected an http(s):, redis(s): or postgres: URL, ${got}`);
  });
});

import { describe } from '../../core/options';
import { isSecureUrl } from '../../core/urls';

/** URL of a token server's `/generations`, and the headers of every request. */
export interface HttpTarget {
  /** Without credentials: safe to log without its query. */
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Reads the options `url` and `headers`: credentials in the URL become a Basic header (RFC 7617), an empty path becomes
 * `/generations`.
 *
 * @throws TypeError when the URL or a header is wrong; the message holds neither credentials nor header values.
 */
export function httpTarget(option: string, extraHeaders: unknown, allowHttp: boolean): HttpTarget {
  const url = parseUrl(option);
  if (!allowHttp && !isSecureUrl(url.href)) {
    throw new TypeError(
      'httpGenerations(): option "url" must be https: (http: is accepted on loopback only, or with allowHttp: true)',
    );
  }
  const headers = requireHeaders(extraHeaders);
  const authorization = basicCredentials(url);
  if (authorization !== undefined && headers.has('authorization')) {
    throw new TypeError('httpGenerations(): credentials in "url" and an Authorization header exclude each other');
  }
  if (authorization !== undefined) headers.set('authorization', authorization);
  url.username = '';
  url.password = '';
  if (url.pathname === '/') url.pathname = '/generations';
  return { url, headers: Object.fromEntries(headers) };
}

function parseUrl(url: string): URL {
  // Node's error repeats its input, and with it the password.
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed || !/^https?:$/.test(parsed.protocol) || parsed.hash !== '') {
    throw new TypeError('httpGenerations(): option "url" must be an absolute http: or https: URL without a fragment');
  }
  return parsed;
}

function requireHeaders(given: unknown): Headers {
  const headers = new Headers();
  if (given === undefined) return headers;
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new TypeError(`httpGenerations(): option "headers" must be an object of strings, got ${describe(given)}`);
  }
  for (const [name, value] of Object.entries(given)) {
    try {
      if (typeof value !== 'string') throw new TypeError('not a string');
      headers.set(name, value);
    } catch {
      // Node's error repeats the value, and that may be a secret.
      throw new TypeError(`httpGenerations(): option "headers" has no valid header under ${describe(name)}`);
    }
  }
  return headers;
}

function basicCredentials({ username, password }: URL): string | undefined {
  if (username === '' && password === '') return undefined;
  const credentials = `${decode(username)}:${decode(password)}`;
  return `Basic ${Buffer.from(credentials).toString('base64')}`;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new TypeError('httpGenerations(): the credentials in "url" must be percent-encoded');
  }
}

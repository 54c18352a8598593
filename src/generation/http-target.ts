import { describe } from '../core/options';

/** Where a token server's generations are read, with what every request carries. */
export interface HttpTarget {
  /** Address of `/generations`, without credentials: safe to log. */
  readonly address: URL;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Reads an address: credentials in it become a Basic header (RFC 7617), an empty path becomes `/generations`.
 *
 * @throws TypeError when the address or a header is wrong; the message holds neither credentials nor header values.
 */
export function httpTarget(url: string, extraHeaders: unknown): HttpTarget {
  const address = parseAddress(url);
  const headers = requireHeaders(extraHeaders);
  const authorization = basicCredentials(address);
  if (authorization !== undefined && headers.has('authorization')) {
    throw new TypeError('httpGenerations(): credentials in "url" and an Authorization header exclude each other');
  }
  if (authorization !== undefined) headers.set('authorization', authorization);
  address.username = '';
  address.password = '';
  if (address.pathname === '/') address.pathname = '/generations';
  return { address, headers: Object.fromEntries(headers) };
}

/** The address of one request: the target's own query stays. */
export function withPath(address: URL, suffix: string, query: Readonly<Record<string, string>> = {}): string {
  const url = new URL(address);
  if (suffix !== '') url.pathname = `${url.pathname.replace(/\/$/, '')}/${suffix}`;
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url.href;
}

/** An address as it may stand in a log: a query can hold an access key. */
export function nameOf({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

function parseAddress(url: string): URL {
  let address: URL | undefined;
  try {
    address = new URL(url);
  } catch {
    // Node's error repeats its input, and with it the password.
  }
  if (!address || !/^https?:$/.test(address.protocol) || address.hash !== '') {
    throw new TypeError('httpGenerations(): option "url" must be an absolute http: or https: URL without a fragment');
  }
  return address;
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
  return `Basic ${Buffer.from(credentials, 'utf8').toString('base64')}`;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new TypeError('httpGenerations(): the credentials in "url" must be percent-encoded');
  }
}

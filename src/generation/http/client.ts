import type { Schedule } from '../../core/clock';
import { describe } from '../../core/options';
import { isSecureUrl } from '../../core/urls';
import type { Fetch } from '../../token/keys/fetch-json';
import { SourceError, describeFailure } from '../source-error';

/** Where a token server's generations are read, with what every request carries. */
export interface HttpTarget {
  /** URL of `/generations`, without credentials: safe to log. */
  readonly address: URL;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Reads an address: credentials in it become a Basic header (RFC 7617), an empty path becomes `/generations`.
 *
 * @throws TypeError when the address or a header is wrong; the message holds neither credentials nor header values.
 */
export function httpTarget(url: string, extraHeaders: unknown, allowHttp: boolean): HttpTarget {
  const address = parseUrl(url);
  if (!allowHttp && !isSecureUrl(address.href)) {
    throw new TypeError(
      'httpGenerations(): option "url" must be https: (http: is accepted on loopback only, or with allowHttp: true)',
    );
  }
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

/** An address as it may appear in a log: a query can hold an access key. */
export function nameOf({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

function parseUrl(url: string): URL {
  // Node's error repeats its input, and with it the password.
  const address = URL.canParse(url) ? new URL(url) : undefined;
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

/** What requests to a token server need. */
export interface HttpClientOptions {
  readonly target: HttpTarget;
  readonly fetch: Fetch;
  readonly schedule: Schedule;
  /** Longest time for one response, in ms. */
  readonly timeoutMs: number;
}

/** Sends the requests of one source, bounded in time; every failure comes out as a `SourceError`. */
export class HttpClient {
  readonly #options: HttpClientOptions;
  readonly #open = new Set<AbortController>();

  constructor(options: HttpClientOptions) {
    this.#options = options;
  }

  /** Opens one exchange; ended by `release`, by its own abort, or by `close`. */
  acquire(): AbortController {
    const exchange = new AbortController();
    this.#open.add(exchange);
    return exchange;
  }

  /** Ends an exchange; whatever is left of the response is dropped. */
  release(exchange: AbortController): void {
    this.#open.delete(exchange);
    exchange.abort(new SourceError('closed'));
  }

  /** Runs `work` on one exchange that is aborted when the time is over. */
  async bounded<Value>(exchange: AbortController, work: () => Promise<Value>): Promise<Value> {
    const { timeoutMs, schedule } = this.#options;
    const timer = schedule(() => exchange.abort(new SourceError(`no response within ${timeoutMs} ms`)), timeoutMs);
    try {
      return await work();
    } catch (error) {
      throw this.failure(exchange, error);
    } finally {
      timer.cancel();
    }
  }

  /** Returns the head. Redirects come back as they are: credentials go to the configured address only. */
  get(exchange: AbortController, url: string, headers: Readonly<Record<string, string>>): Promise<Response> {
    const { fetch, target } = this.#options;
    return fetch(url, {
      redirect: 'manual',
      signal: exchange.signal,
      headers: { ...target.headers, 'cache-control': 'no-cache', ...headers },
    });
  }

  /** The failure of an exchange, in our own words. */
  failure(exchange: AbortController, error: unknown): SourceError {
    const reason: unknown = exchange.signal.aborted ? exchange.signal.reason : error;
    const name = nameOf(this.#options.target.address);
    return new SourceError(`GET ${name}: ${describeFailure(reason)}`, { cause: error });
  }

  close(): void {
    for (const exchange of [...this.#open]) this.release(exchange);
  }
}

/** @throws SourceError when a response is not 200 with one of the expected content types. */
export function requireOk(response: Response, contentType: RegExp, expected: string): void {
  if (response.status >= 300 && response.status < 400) {
    throw new SourceError(`answered ${response.status}; redirects are refused, configure the final address`);
  }
  if (response.status !== 200) throw new SourceError(`answered ${response.status}, expected 200`);
  if (!contentType.test(response.headers.get('content-type') ?? '')) {
    throw new SourceError(`answered another content type than ${expected}`);
  }
}

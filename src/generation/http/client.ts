import type { Schedule, Timer } from '../../core/clock';
import { ownValue } from '../../core/objects';
import { describe } from '../../core/options';
import { isSecureUrl } from '../../core/urls';
import type { Fetch } from '../../token/keys/fetch-json';
import { SourceError, describeFailure, noResponse } from '../source-error';

/** URL of a token server's `/generations`, and the headers of every request. */
export interface HttpTarget {
  /** Without credentials: safe to log. */
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Reads the option `url`: credentials in it become a Basic header (RFC 7617), an empty path becomes `/generations`.
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

/** The URL of one request: the target's own query stays. */
export function withPath(target: URL, suffix: string, query: Readonly<Record<string, string>> = {}): string {
  const url = new URL(target);
  if (suffix !== '') url.pathname = `${url.pathname.replace(/\/$/, '')}/${suffix}`;
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url.href;
}

/** A URL without its query, which can hold an access key: safe to log. */
export function loggableUrl({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
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

/** How requests reach a token server. */
export interface HttpClientOptions {
  readonly target: HttpTarget;
  readonly fetch: Fetch;
  readonly schedule: Schedule;
  /** Longest time for one response, in ms. */
  readonly timeoutMs: number;
}

/** Sends the requests of one source, bounded in time; every failure is a `SourceError`. */
export class HttpClient {
  readonly #options: HttpClientOptions;
  readonly #open = new Set<AbortController>();

  constructor(options: HttpClientOptions) {
    this.#options = options;
  }

  /** Opens one exchange. It ends by `release`, by its own abort, or by `close`. */
  acquire(): AbortController {
    const exchange = new AbortController();
    this.#open.add(exchange);
    return exchange;
  }

  /** Ends an exchange and drops the rest of its response. */
  release(exchange: AbortController): void {
    this.#open.delete(exchange);
    exchange.abort(new SourceError('closed'));
  }

  /** Runs `work` on one exchange that is aborted at the time limit, which starts anew with each call of `progress`. */
  async bounded<Value>(exchange: AbortController, work: (progress: () => void) => Promise<Value>): Promise<Value> {
    const { timeoutMs, schedule } = this.#options;
    const start = (): Timer => schedule(() => exchange.abort(noResponse(timeoutMs)), timeoutMs);
    let timer = start();
    try {
      return await work(() => {
        timer.cancel();
        timer = start();
      });
    } catch (error) {
      throw this.failure(exchange, error);
    } finally {
      timer.cancel();
    }
  }

  /** Resolves with the response head. Redirects are not followed: credentials go to the configured URL only. */
  async get(exchange: AbortController, url: string, headers: Readonly<Record<string, string>>): Promise<Response> {
    const { fetch, target } = this.#options;
    const init: RequestInit = {
      redirect: 'manual',
      signal: exchange.signal,
      headers: { ...target.headers, 'cache-control': 'no-cache', ...headers },
    };
    try {
      return await fetch(url, init);
    } catch (error) {
      if (!isConnectionReset(error) || exchange.signal.aborted) throw error;
      // The server may close an idle connection just as it is used again (RFC 9112 section 9.3.1).
      return fetch(url, init);
    }
  }

  /** Describes the failure of an exchange without repeating the error's message. */
  failure(exchange: AbortController, error: unknown): SourceError {
    const reason: unknown = exchange.signal.aborted ? exchange.signal.reason : error;
    const name = loggableUrl(this.#options.target.url);
    const via = error instanceof SourceError ? error.via : undefined;
    return new SourceError(`GET ${name}: ${describeFailure(reason)}`, { cause: error, via });
  }

  close(): void {
    for (const exchange of [...this.#open]) this.release(exchange);
  }
}

/** Whether a connection was closed before the response, in the words of Node's `fetch` (undici). */
function isConnectionReset(error: unknown): boolean {
  const code = ownValue(ownValue(error, 'cause'), 'code');
  return code === 'ECONNRESET' || code === 'UND_ERR_SOCKET';
}

/**
 * @param via - the relays that the response came through
 * @throws SourceError when a response is not 200 with one of the expected content types.
 */
export function requireOk(response: Response, contentType: RegExp, expected: string, via?: readonly string[]): void {
  if (response.status >= 300 && response.status < 400) {
    throw new SourceError(`responded with ${response.status}; redirects are refused, configure the final URL`);
  }
  if (response.status !== 200) throw new SourceError(`responded with ${response.status}, expected 200`, { via });
  if (!contentType.test(response.headers.get('content-type') ?? '')) {
    throw new SourceError(`responded with another content type than ${expected}`);
  }
}

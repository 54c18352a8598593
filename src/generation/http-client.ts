import type { Schedule } from '../core/clock';
import type { Fetch } from '../token/keys/fetch-json';
import { nameOf } from './http-target';
import type { HttpTarget } from './http-target';
import { SourceError, describeFailure } from './source-error';

/** What requests to a token server need. */
export interface HttpClientOptions {
  readonly target: HttpTarget;
  readonly fetch: Fetch;
  readonly schedule: Schedule;
  /** Longest time for one answer, in ms. */
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

  /** Ends an exchange; whatever is left of the answer is dropped. */
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

  /** Answers the head. Redirects come back as they are: credentials go to the configured address only. */
  get(exchange: AbortController, url: string, headers: Readonly<Record<string, string>>): Promise<Response> {
    const { fetch, target } = this.#options;
    return fetch(url, {
      redirect: 'manual',
      signal: exchange.signal,
      headers: { ...target.headers, 'cache-control': 'no-cache', ...headers },
    });
  }

  /** The failure of an exchange in our own words. */
  failure(exchange: AbortController, error: unknown): SourceError {
    const reason: unknown = exchange.signal.aborted ? exchange.signal.reason : error;
    const name = nameOf(this.#options.target.address);
    return new SourceError(`GET ${name}: ${describeFailure(reason)}`, { cause: error });
  }

  close(): void {
    for (const exchange of [...this.#open]) this.release(exchange);
  }
}

/** @throws SourceError when an answer is not 200 with one of the expected content types. */
export function requireOk(response: Response, contentType: RegExp, expected: string): void {
  if (response.status >= 300 && response.status < 400) {
    throw new SourceError(`answered ${response.status}; redirects are refused, configure the final address`);
  }
  if (response.status !== 200) throw new SourceError(`answered ${response.status}, expected 200`);
  if (!contentType.test(response.headers.get('content-type') ?? '')) {
    throw new SourceError(`answered another content type than ${expected}`);
  }
}

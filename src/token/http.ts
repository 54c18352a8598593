import type { Schedule, Timer } from '../core/clock';
import { attempt, ownMembers } from '../core/objects';
import { readBody } from '../core/read-body';
import { loggableUrl } from '../core/urls';
import { parseJson, parseJsonObject } from './strict-json';
import type { JsonObject } from './strict-json';

/** The part of `fetch` that is used; inject another one for proxies, mutual TLS or tests. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** How a request is sent. */
export interface Exchange {
  readonly fetch: Fetch;
  /** Aborts the exchange, head and body. A reason that is a string completes the sentence "<URL> ...". */
  readonly signal: AbortSignal;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** A form to send with POST. Default: GET. */
  readonly form?: URLSearchParams | undefined;
}

/** How a document is fetched. */
export interface DocumentExchange extends Exchange {
  /** Largest accepted body, in bytes. */
  readonly maxBytes: number;
}

/** A request without a usable response. The message is our own; `status` is set when the server responded. */
export class FetchError extends Error {
  override readonly name = 'FetchError';
  readonly status: number | undefined;

  constructor(message: string, options: { readonly status?: number; readonly cause?: unknown } = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.status = options.status;
  }
}

/**
 * Fetches JSON, parsed strictly, bounded in time and size.
 *
 * @throws FetchError
 */
export function fetchJson(url: string, options: DocumentExchange): Promise<unknown> {
  return fetchParsed(url, options, parseJson, 'JSON');
}

/** As `fetchJson()`, for an object. */
export function fetchObject(url: string, options: DocumentExchange): Promise<JsonObject> {
  return fetchParsed(url, options, parseJsonObject, 'a JSON object');
}

function fetchParsed<Value>(
  url: string,
  options: DocumentExchange,
  parse: (bytes: Buffer) => Value,
  expected: string,
): Promise<Value> {
  const { maxBytes } = options;
  return exchange(url, options, async ({ body, status }) => {
    const bytes = body ? await readBody(body, maxBytes) : Buffer.alloc(0);
    const refuse = (why: string): never => {
      throw new FetchError(`${loggableUrl(url)} ${why}`, { status });
    };
    if (bytes === undefined) return refuse(`responded with more than ${maxBytes} bytes`);
    // The parser's message quotes the response.
    return attempt(() => parse(bytes)) ?? refuse(`did not respond with ${expected}`);
  });
}

/**
 * Sends a request and hands its response, which has status 200, to `read`. Redirects are refused: credentials go to the
 * configured URL only, and documents that decide which keys and tokens are trusted must come from it.
 *
 * @throws FetchError whatever fails; errors of `read` are its cause, unless they are FetchErrors themselves
 */
export async function exchange<Value>(
  url: string,
  options: Exchange,
  read: (response: Response) => Promise<Value>,
): Promise<Value> {
  const name = loggableUrl(url);
  async function work(): Promise<Value> {
    options.signal.throwIfAborted();
    const response = await send(url, options);
    const { status } = response;
    if (status === 200) return read(response);
    await response.body?.cancel();
    const advice = status >= 300 && status < 400 ? '; redirects are refused, configure the final URL' : '';
    throw new FetchError(`${name} responded with ${status}${advice}`, { status });
  }
  try {
    return await unlessAborted(options.signal, name, work());
  } catch (cause) {
    if (cause instanceof FetchError) throw cause;
    const code = codeOf(cause);
    throw new FetchError(`${name} could not be fetched${code === undefined ? '' : ` (${code})`}`, { cause });
  }
}

/** Without prototypes: fetch reads inherited members of its options too. */
async function send(url: string, options: Exchange): Promise<Response> {
  const { fetch, signal, headers, form } = ownMembers(options);
  const accept = { accept: 'application/json', ...headers };
  const request = ownMembers({ redirect: 'manual', signal, headers: accept } as const);
  if (form)
    return fetch(
      url,
      ownMembers({ ...request, method: 'POST', headers: { ...accept, ...FORM }, body: form.toString() }),
    );
  try {
    return await fetch(url, request);
  } catch (error) {
    // The server may close an idle connection just as it is used again (RFC 9112 section 9.3.1).
    if (!/^(ECONNRESET|UND_ERR_SOCKET)$/.test(codeOf(error) ?? '') || signal.aborted) throw error;
    return fetch(url, request);
  }
}

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

/** `ECONNREFUSED`: the code alone, because the messages of causes can contain anything. */
function codeOf(error: unknown): string | undefined {
  const code: unknown = (error as { cause?: { code?: unknown } } | undefined)?.cause?.code;
  return typeof code === 'string' ? code : undefined;
}

/**
 * Waits for work until a signal aborts the wait; the work may go on, and its result is dropped.
 *
 * @param what - begins the message: "<what> did not respond within 5000 ms"
 * @throws FetchError when the signal aborts
 */
export async function unlessAborted<Value>(signal: AbortSignal, what: string, work: Promise<Value>): Promise<Value> {
  let giveUp = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => (giveUp = () => reject(new FetchError('aborted'))));
  signal.addEventListener('abort', giveUp);
  try {
    return await Promise.race([work, aborted]);
  } catch (error) {
    const reason: unknown = signal.reason;
    if (signal.aborted)
      throw new FetchError(`${what} ${typeof reason === 'string' ? reason : 'did not respond in time'}`);
    throw error;
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

/** The exchanges under way of one part of the gate. */
export class Exchanges {
  readonly #open = new Set<AbortController>();
  readonly #schedule: Schedule;

  constructor(schedule: Schedule) {
    this.#schedule = schedule;
  }

  /** Runs `work` until it takes longer than `limitMs` since it began, or since it last called `progress`. */
  async run<Value>(
    limitMs: number,
    work: (signal: AbortSignal, progress: () => void) => Promise<Value>,
  ): Promise<Value> {
    const abort = new AbortController();
    const limit = (): Timer => this.#schedule(() => abort.abort(`did not respond within ${limitMs} ms`), limitMs);
    let deadline = limit();
    this.#open.add(abort);
    try {
      return await work(abort.signal, () => {
        deadline.cancel();
        if (this.#open.has(abort)) deadline = limit();
      });
    } finally {
      deadline.cancel();
      this.#open.delete(abort);
    }
  }

  /** Aborts those under way. */
  close(): void {
    for (const abort of this.#open) abort.abort('is not asked any more');
  }
}

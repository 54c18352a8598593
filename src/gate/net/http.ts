import type { Schedule } from '../core/clock';
import { attempt, ownMembers } from '../core/objects';
import { loggableUrl } from '../core/urls';
import type * as NodeHttp from './node-http';
import { parseJsonObject, type JsonObject } from './strict-json';
import { DISPATCHER, networkCodeOf, overFetch, type Fetch, type HttpRequest, type HttpResponse } from './transport';
import type * as Unreachable from './unreachable';

export type { Fetch } from './transport';

/** How a request is sent. */
export interface FetchOptions {
  /** Default: the HTTP client of Node. */
  readonly fetch?: Fetch | undefined;
  /** Aborts the exchange, head and body. A reason that is a string completes the sentence "<URL> ...". */
  readonly signal: AbortSignal;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** A form to send with POST. Default: GET. */
  readonly form?: URLSearchParams | undefined;
  /** The content type that the response must have. Default: any. */
  readonly contentType?: string | undefined;
  /** Largest body that is fetched, in bytes. Default 1 MiB. */
  readonly maxBytes?: number | undefined;
  /** Called with the headers of the response, whatever its status is. */
  readonly onHeaders?: ((header: HttpResponse['header']) => void) | undefined;
}

/** A request without a usable response. The message is our own; `status` is set when the server responded. */
export class FetchError extends Error {
  override readonly name = 'FetchError';
  readonly status: number | undefined;
  /** The header Retry-After of the response. */
  readonly retryAfter: string | undefined;

  constructor(
    message: string,
    options: { readonly status?: number; readonly retryAfter?: string | undefined; readonly cause?: unknown } = {},
  ) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    const { status, retryAfter } = ownMembers(options);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** Fetches a JSON object, parsed strictly. Rejects with a FetchError. */
export async function fetchObject(url: string, options: FetchOptions): Promise<JsonObject> {
  const bytes = await fetchBytes(url, options);
  return attempt(() => parseJsonObject(bytes)) ?? refuseDocument(url, 'did not respond with a JSON object', 200);
}

/**
 * Fetches the body of a response, which has status 200. Redirects are refused: credentials go to the configured URL only, and
 * documents that decide which keys and tokens are trusted must come from it.
 *
 * @throws FetchError
 */
export function fetchBytes(url: string, options: FetchOptions): Promise<Buffer> {
  const { signal, contentType, maxBytes = MAX_BYTES, onHeaders } = ownMembers(options);
  async function work(): Promise<Buffer> {
    signal.throwIfAborted();
    const response = await fetchWith(url, options).catch((cause: unknown) => fail(url, cause, options));
    const { status, header, body } = response;
    onHeaders?.(header);
    const type = header('content-type')?.split(';')[0]?.trim().toLowerCase();
    const isExpected = contentType === undefined || type === contentType;
    if (status === 200 && isExpected) {
      const bytes = body
        ? await readBody(body, maxBytes).catch((cause: unknown) => fail(url, cause, options))
        : NO_BYTES;
      return bytes ?? refuseDocument(url, `responded with more than ${maxBytes} bytes`, status);
    }
    if (options.form && body && status >= 400 && status < 500) {
      const error = await readError(body);
      if (error !== undefined)
        return refuseDocument(url, `responded with ${status} (${error})`, status, header('retry-after'));
    } else await body?.cancel();
    if (status === 200) return refuseDocument(url, `responded with another content type than ${contentType}`, status);
    const advice = status >= 300 && status < 400 ? '; redirects are refused, configure the final URL' : '';
    return refuseDocument(url, `responded with ${status}${advice}`, status, header('retry-after'));
  }
  return unlessAborted(signal, loggableUrl(url), work(), () => hintOn(url, 'ETIMEDOUT', options));
}

/** The names of RFC 6749 section 5.2: no other text of a response may get into a log. */
const OAUTH_ERROR =
  /^(?:invalid_request|invalid_client|invalid_grant|unauthorized_client|unsupported_grant_type|invalid_scope)$/;

async function readError(body: AsyncIterable<Uint8Array>): Promise<string | undefined> {
  const bytes = await readBody(body, 4_096).catch(() => undefined);
  const error = bytes && attempt(() => parseJsonObject(bytes))?.['error'];
  return typeof error === 'string' && OAUTH_ERROR.test(error) ? error : undefined;
}

const MAX_BYTES = 1_048_576;
const NO_BYTES = Buffer.alloc(0);

function refuseDocument(url: string, why: string, status: number, retryAfter?: string): never {
  throw new FetchError(`${loggableUrl(url)} ${why}`, { status, retryAfter });
}

function fail(url: string, cause: unknown, options: FetchOptions): never {
  const code = networkCodeOf(cause);
  const why = code === undefined ? '' : ` (${code})${hintOn(url, code, options)}`;
  throw new FetchError(`${loggableUrl(url)} could not be fetched${why}`, { cause });
}

function hintOn(url: string, code: string, { fetch }: FetchOptions): string {
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- loaded with the first failure
  return (require('./unreachable') as typeof Unreachable).connectionHint(url, code, fetch !== undefined);
}

function fetchWith(url: string, options: FetchOptions): Promise<HttpResponse> {
  const { fetch, signal, headers, form, contentType = 'application/json' } = ownMembers(options);
  const sent = ownMembers({ accept: contentType, ...headers, ...(form && FORM_HEADERS) });
  return (fetch ? overFetch(fetch) : sendByDefault)(url, { signal, headers: sent, form: form?.toString() });
}

const FORM_HEADERS = { 'content-type': 'application/x-www-form-urlencoded' };

/** A test compares it with package.json, which would be one more file to load. */
const USER_AGENT = 'tillgate/0.1.0';

/** Over node:http, because `fetch` costs a process 90 ms and 18 MB; over `fetch` where it may do more. Chosen for each request. */
async function sendByDefault(url: string, { headers, ...request }: HttpRequest): Promise<HttpResponse> {
  const identified = { ...request, headers: ownMembers({ 'user-agent': USER_AGENT, ...headers }) };
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- static keys need none of it
  if (!isFetchPreferred()) return (require('./node-http') as typeof NodeHttp).sendOverNode(url, identified);
  return overFetch((target, init) => fetch(target, init))(url, identified);
}

/** Whether undici is loaded anyway and may have a dispatcher of the app, or only `fetch` follows the proxies of the environment. */
function isFetchPreferred(): boolean {
  if (typeof globalThis.fetch !== 'function') return false;
  if (Object.hasOwn(globalThis, DISPATCHER)) return true;
  const followsProxies = Boolean(process.env['NODE_USE_ENV_PROXY']);
  // Node has this flag since its HTTP client follows them too.
  return followsProxies && !process.allowedNodeEnvironmentFlags.has('--use-env-proxy');
}

/**
 * Waits for work until a signal aborts the wait; the work may go on, and its result is dropped.
 *
 * @param what - begins the message: "<what> did not respond within 5000 ms"
 * @param hint - ends it
 * @throws FetchError when the signal aborts
 */
export async function unlessAborted<Value>(
  signal: AbortSignal,
  what: string,
  work: Promise<Value>,
  hint = (): string => '',
): Promise<Value> {
  let giveUp = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => (giveUp = () => reject(new FetchError('aborted'))));
  signal.addEventListener('abort', giveUp);
  try {
    return await Promise.race([work, aborted]);
  } catch (error) {
    const reason: unknown = signal.reason;
    if (!signal.aborted) throw error;
    throw new FetchError(`${what} ${typeof reason === 'string' ? reason : 'did not respond in time'}${hint()}`);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

/** The outgoing requests of one part of the gate: each has a time limit, and closing aborts the open ones. */
export class OutgoingRequests {
  readonly #open = new Set<AbortController>();
  readonly #schedule: Schedule;

  constructor(schedule: Schedule) {
    this.#schedule = schedule;
  }

  /** Runs `work` for at most `limitMs`. */
  async run<Value>(limitMs: number, work: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
    const abort = new AbortController();
    const deadline = this.#schedule(() => abort.abort(`did not respond within ${limitMs} ms`), limitMs);
    this.#open.add(abort);
    try {
      return await work(abort.signal);
    } catch (error) {
      // Drops what is left of the response.
      abort.abort();
      throw error;
    } finally {
      deadline.cancel();
      this.#open.delete(abort);
    }
  }

  /** Aborts the open ones. */
  close(): void {
    for (const abort of this.#open) abort.abort('is not asked any more');
  }
}

/**
 * Reads a body whole, up to a limit. Counts what arrives, because a Content-Length is only a claim.
 *
 * @returns `undefined` when the body is larger; the rest of it is not read
 */
export async function readBody(chunks: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer | undefined> {
  const received: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.byteLength;
    if (length > maxBytes) return undefined;
    received.push(chunk);
  }
  return Buffer.concat(received);
}

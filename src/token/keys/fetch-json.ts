import { isObject, ownMembers } from '../../core/objects';
import { readBody } from '../../core/read-body';
import { loggableUrl } from '../../core/urls';

/** The part of `fetch` that is used; inject another one for proxies, mutual TLS or tests. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Bounds of a fetch. */
export interface FetchJsonOptions {
  readonly fetch: Fetch;
  /** Aborts the fetch, head and body. A reason that is a string completes the sentence "<URL> ...". */
  readonly signal: AbortSignal;
  /** Largest accepted body, in bytes. */
  readonly maxBytes: number;
  /** A form to send with POST. Default: GET. */
  readonly form?: { readonly body: string; readonly authorization: string | undefined } | undefined;
  /** Parses the body; what it throws is not looked at. Default: `JSON.parse`. */
  readonly parse?: ((body: Buffer) => unknown) | undefined;
}

/** A document that could not be fetched. The message is our own; `status` is set when the server responded. */
export class FetchError extends Error {
  override readonly name = 'FetchError';
  readonly status: number | undefined;

  constructor(message: string, options: { readonly status?: number; readonly cause?: unknown } = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.status = options.status;
  }
}

/**
 * Fetches a JSON object, bounded in time and size. Redirects are refused, because an issuer's documents decide which
 * keys and tokens are trusted and must come from the configured URL.
 *
 * @throws FetchError
 */
export async function fetchJson(url: string, options: FetchJsonOptions): Promise<Readonly<Record<string, unknown>>> {
  try {
    return await unlessAborted(options.signal, loggableUrl(url), download(url, options));
  } catch (cause) {
    if (cause instanceof FetchError) throw cause;
    throw new FetchError(`${loggableUrl(url)} could not be fetched${errorCode(cause)}`, { cause });
  }
}

async function download(url: string, options: FetchJsonOptions): Promise<Readonly<Record<string, unknown>>> {
  const { fetch, maxBytes, signal, parse = parseText } = ownMembers(options);
  signal.throwIfAborted();
  const response = await fetch(url, requestOf(options));
  const { status } = response;
  if (status !== 200) {
    await response.body?.cancel();
    throw new FetchError(`${loggableUrl(url)} responded with ${status}`, { status });
  }
  const body = response.body ? await readBody(response.body, maxBytes) : Buffer.alloc(0);
  if (body === undefined) {
    throw new FetchError(`${loggableUrl(url)} responded with more than ${maxBytes} bytes`, { status });
  }
  const document = attempt(() => parse(body));
  if (!isObject(document)) throw new FetchError(`${loggableUrl(url)} did not respond with a JSON object`, { status });
  return document;
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
    if (signal.aborted) throw new FetchError(`${what} ${abortReason(signal)}`);
    throw error;
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

/** Without a prototype: fetch reads inherited members of its options too. */
function requestOf(options: FetchJsonOptions): RequestInit {
  const { signal, form } = ownMembers(options);
  const request = { redirect: 'manual', signal } as const;
  const accept = 'application/json';
  if (!form) return ownMembers({ ...request, headers: { accept } });
  const { body, authorization } = form;
  const type = { 'content-type': 'application/x-www-form-urlencoded' };
  const headers = { accept, ...(authorization !== undefined && { authorization }), ...type };
  return ownMembers({ ...request, method: 'POST', headers, body });
}

function parseText(body: Buffer): unknown {
  return JSON.parse(body.toString());
}

/** What `work` returns; `undefined` when it throws, for errors whose message repeats what was read. */
export function attempt<Value>(work: () => Value): Value | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

function abortReason({ reason }: AbortSignal): string {
  return typeof reason === 'string' ? reason : 'did not respond in time';
}

/** ` (ECONNREFUSED)`: the code alone, because the messages of causes can contain anything. */
function errorCode(error: unknown): string {
  const code: unknown = (error as { cause?: { code?: unknown } } | undefined)?.cause?.code;
  return typeof code === 'string' ? ` (${code})` : '';
}

import { isObject } from '../../core/objects';
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
 * keys are trusted and must come from the configured URL.
 *
 * @throws FetchError
 */
export async function fetchJson(url: string, options: FetchJsonOptions): Promise<Readonly<Record<string, unknown>>> {
  const { signal } = options;
  try {
    return await unlessAborted(signal, download(url, options));
  } catch (cause) {
    if (signal.aborted) throw new FetchError(`${loggableUrl(url)} ${abortReason(signal)}`);
    if (cause instanceof FetchError) throw cause;
    throw new FetchError(`${loggableUrl(url)} could not be fetched${errorCode(cause)}`, { cause });
  }
}

async function download(url: string, options: FetchJsonOptions): Promise<Readonly<Record<string, unknown>>> {
  const { fetch, maxBytes, signal } = options;
  signal.throwIfAborted();
  const response = await fetch(url, { redirect: 'manual', signal, headers: { accept: 'application/json' } });
  const { status } = response;
  if (status !== 200) {
    await response.body?.cancel();
    throw new FetchError(`${loggableUrl(url)} responded with ${status}`, { status });
  }
  const body = response.body ? await readBody(response.body, maxBytes) : '';
  if (body === undefined) {
    throw new FetchError(`${loggableUrl(url)} responded with more than ${maxBytes} bytes`, { status });
  }
  const document = parse(body.toString());
  if (!isObject(document)) throw new FetchError(`${loggableUrl(url)} did not respond with a JSON object`, { status });
  return document;
}

/** An injected fetch may ignore the signal: then its result is dropped. */
function unlessAborted<Value>(signal: AbortSignal, work: Promise<Value>): Promise<Value> {
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new FetchError('aborted')));
  });
  return Promise.race([work, aborted]);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
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

/** The part of `fetch` that is used; inject another one for proxies, mutual TLS or tests. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Bounds of a fetch. */
export interface FetchJsonOptions {
  readonly fetch: Fetch;
  /** Ends the fetch, head and body; a reason that is a text completes the sentence "<address> ...". */
  readonly signal: AbortSignal;
  /** Largest accepted body, in bytes. */
  readonly maxBytes: number;
}

/** A document that could not be had, with a message of our own. `status` is there when the server answered. */
export class FetchError extends Error {
  override readonly name = 'FetchError';
  readonly status: number | undefined;

  constructor(message: string, options: { readonly status?: number; readonly cause?: unknown } = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.status = options.status;
  }
}

/**
 * Fetches a JSON object: bounded in time and size, redirects refused, because an issuer's documents decide whom we
 * trust and stand at the address that was configured.
 *
 * @throws FetchError
 */
export async function fetchJson(url: string, options: FetchJsonOptions): Promise<Record<string, unknown>> {
  const { signal } = options;
  try {
    return await unlessAborted(signal, download(url, options));
  } catch (cause) {
    if (signal.aborted) throw new FetchError(`${url} ${abortReason(signal)}`);
    if (cause instanceof FetchError) throw cause;
    throw new FetchError(`${url} could not be fetched${errorCode(cause)}`, { cause });
  }
}

async function download(url: string, options: FetchJsonOptions): Promise<Record<string, unknown>> {
  const { signal } = options;
  signal.throwIfAborted();
  const response = await options.fetch(url, { redirect: 'manual', signal, headers: { accept: 'application/json' } });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new FetchError(`${url} answered ${response.status}`, { status: response.status });
  }
  return parseObject(url, await readBody(url, response, options));
}

/** An injected fetch may not know the signal: nobody waits for it any longer, and what it still brings is dropped. */
function unlessAborted<Value>(signal: AbortSignal, work: Promise<Value>): Promise<Value> {
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new FetchError('aborted')), { once: true });
  });
  return Promise.race([work, aborted]);
}

async function readBody(url: string, response: Response, { maxBytes, signal }: FetchJsonOptions): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Counted while it arrives: a Content-Length is a claim, and the body may be endless. Leaving the loop cancels the body.
  for await (const chunk of response.body ?? []) {
    signal.throwIfAborted();
    length += (chunk as Uint8Array).byteLength;
    if (length > maxBytes) throw new FetchError(`${url} answered more than ${maxBytes} bytes`, { status: 200 });
    chunks.push(chunk as Uint8Array);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseObject(url: string, body: string): Record<string, unknown> {
  let document: unknown;
  try {
    document = JSON.parse(body);
  } catch {
    document = undefined;
  }
  if (typeof document !== 'object' || document === null || Array.isArray(document)) {
    throw new FetchError(`${url} did not answer a JSON object`, { status: 200 });
  }
  return document as Record<string, unknown>;
}

function abortReason({ reason }: AbortSignal): string {
  return typeof reason === 'string' ? reason : 'did not answer in time';
}

/** ` (ECONNREFUSED)`: the code alone, because messages below may carry anything. */
function errorCode(error: unknown): string {
  const code: unknown = (error as { cause?: { code?: unknown } } | undefined)?.cause?.code;
  return typeof code === 'string' ? ` (${code})` : '';
}

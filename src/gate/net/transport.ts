import { ownMembers } from '../core/objects';

/** The part of `fetch` that is used; inject another one for proxies, mutual TLS or tests. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** A request: a GET, or a POST of a form. */
export interface HttpRequest {
  /** Ends the exchange, head and body. */
  readonly signal: AbortSignal;
  readonly headers: Readonly<Record<string, string>>;
  readonly form: string | undefined;
}

/** A response, whichever way it came. */
export interface HttpResponse {
  readonly status: number;
  /** A header by its name in lower case; several of one name are joined with commas. */
  readonly header: (name: string) => string | undefined;
  /** Decoded. Who does not read it to its end, or leaves the loop, cancels it. */
  readonly body: (AsyncIterable<Uint8Array> & { cancel(): unknown }) | null;
}

/** Sends a request and resolves with the head of the response. Follows no redirect. Sends a GET again, once, whose idle connection was closed. */
export type Transport = (url: string, request: HttpRequest) => Promise<HttpResponse>;

/** Sends requests by an injected `fetch`, or by the global one. */
export function overFetch(fetch: Fetch): Transport {
  return async (url, { signal, headers, form }) => {
    // Without prototypes: fetch reads inherited members of its options too.
    const init = ownMembers<RequestInit>({ redirect: 'manual', signal, headers });
    if (form !== undefined) Object.assign(init, { method: 'POST', body: form });
    const response = await fetch(url, init).catch((error: unknown) => {
      // The server may close an idle connection just as it is used again (RFC 9112 section 9.3.1).
      const isClosed = /^(ECONNRESET|UND_ERR_SOCKET)$/.test(networkCodeOf(error) ?? '');
      if (form !== undefined || !isClosed || signal.aborted) throw error;
      return fetch(url, init);
    });
    const { status, body } = response;
    return { status, header: (name) => response.headers.get(name) ?? undefined, body };
  };
}

/** Where undici keeps its dispatcher once something in the process has used `fetch`, or has set a dispatcher. */
export const DISPATCHER = Symbol.for('undici.globalDispatcher.1');

/** `ECONNREFUSED`: the code alone, because the messages of errors can contain anything. */
export function networkCodeOf(error: unknown): string | undefined {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: { code?: unknown } };
  return [cause?.code, code].find((each) => typeof each === 'string');
}

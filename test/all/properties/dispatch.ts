import { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestListener } from 'node:http';
import { Socket } from 'node:net';

/** A request of a property test. */
export interface Sent {
  readonly method: string;
  readonly path: string;
  readonly bearer?: string | undefined;
  /** Sent as JSON; with `form` as a form. */
  readonly body?: Readonly<Record<string, unknown>> | undefined;
  readonly form?: Readonly<Record<string, string>> | undefined;
}

/** Its response. */
export interface Got {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

interface Raw {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Sends a request to a listener without a connection, so that thousands of them take no time. */
export async function dispatch(listener: RequestListener, { method, path, bearer, body, form }: Sent): Promise<Got> {
  const text = form ? new URLSearchParams(form).toString() : body ? JSON.stringify(body) : '';
  const type = form ? 'application/x-www-form-urlencoded' : 'application/json';
  const response = await exchange(listener, method, path, text, {
    ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
    ...(text !== '' && { 'content-type': type, 'content-length': String(Buffer.byteLength(text)) }),
  });
  return { status: response.status, body: response.text === '' ? {} : (JSON.parse(response.text) as Got['body']) };
}

/** A `fetch` that reaches one listener, for any host. */
export function fetchFrom(listener: () => RequestListener): (url: string, init: RequestInit) => Promise<Response> {
  return async function fetchInProcess(url, init) {
    const { pathname, search } = new URL(url);
    const headers = Object.fromEntries(new Headers(init.headers));
    const { text, status, ...response } = await exchange(
      listener(),
      init.method ?? 'GET',
      pathname + search,
      '',
      headers,
    );
    return new Response(text === '' ? null : text, { status, ...response });
  };
}

function exchange(
  listener: RequestListener,
  method: string,
  url: string,
  body: string,
  headers: Readonly<Record<string, string>>,
): Promise<Raw> {
  const req = new IncomingMessage(new Socket());
  Object.assign(req, { method, url, headers, rawHeaders: Object.entries(headers).flat() });
  if (body !== '') req.push(body);
  req.push(null);
  const res = new ServerResponse(req);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const keep = (chunk: unknown): void => {
      if (typeof chunk === 'string' || Buffer.isBuffer(chunk)) chunks.push(Buffer.from(chunk as Buffer));
    };
    Object.assign(res, {
      write: (chunk: unknown) => (keep(chunk), true),
      end: (chunk: unknown) => {
        keep(chunk);
        const fields = Object.entries(res.getHeaders()).map(([name, value]) => [name, String(value)] as const);
        resolve({
          status: res.statusCode,
          headers: Object.fromEntries(fields),
          text: Buffer.concat(chunks).toString(),
        });
        return res;
      },
    });
    listener(req, res);
  });
}

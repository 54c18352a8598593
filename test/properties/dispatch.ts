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

/** Its answer. */
export interface Got {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Hands a request to a listener without a connection, so that thousands of them take no time. */
export function dispatch(listener: RequestListener, { method, path, bearer, body, form }: Sent): Promise<Got> {
  const text = form ? new URLSearchParams(form).toString() : body ? JSON.stringify(body) : '';
  const req = new IncomingMessage(new Socket());
  const headers: Record<string, string> = {
    ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
    ...(text !== '' && {
      'content-type': form ? 'application/x-www-form-urlencoded' : 'application/json',
      'content-length': String(Buffer.byteLength(text)),
    }),
  };
  Object.assign(req, { method, url: path, headers, rawHeaders: Object.entries(headers).flat() });
  if (text !== '') req.push(text);
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
        const answer = Buffer.concat(chunks).toString();
        resolve({ status: res.statusCode, body: answer === '' ? {} : (JSON.parse(answer) as Got['body']) });
        return res;
      },
    });
    listener(req, res);
  });
}

import { Agent, request as requestHttp } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import { Agent as SecureAgent, request as requestHttps } from 'node:https';
import { isJson, mediaTypeOf } from './media-type';

/** Headers to send; a list is a header that is sent more than once. */
export type SentHeaders = Readonly<Record<string, string | readonly string[]>>;

/** A request to the API under test. */
export interface Outgoing {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: SentHeaders;
  readonly body: string | undefined;
}

/** What came back. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The parsed body, where it is JSON. */
  readonly body: unknown;
  /** Port of this side of the connection. */
  readonly localPort: number | undefined;
}

/** Sends requests to one server. */
export type Send = (request: Outgoing) => Promise<Answer>;

/** A server that says nothing for so long hangs, in ms. */
const PATIENCE_MS = 10_000;

/** Makes a client that keeps its connections; they hold no process up. */
export function client(origin: URL): Send {
  const secure = origin.protocol === 'https:';
  const agent = secure ? new SecureAgent({ keepAlive: true }) : new Agent({ keepAlive: true });
  const open = secure ? requestHttps : requestHttp;

  return function send({ method, target, headers, body }) {
    return new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
      const options = { agent, method, headers: { ...headers, ...length }, timeout: PATIENCE_MS };
      const request = open(new URL(target, origin), options, (response) => {
        const { statusCode = 0, socket } = response;
        const { localPort } = socket;
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('error', reject);
        response.once('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          const { headers: received } = response;
          resolve({ status: statusCode, headers: received, text, body: parse(received, text), localPort });
        });
      });
      request.once('timeout', () => request.destroy(new Error(`no response within ${PATIENCE_MS} ms`)));
      request.once('error', reject);
      request.end(body);
    });
  };
}

function parse({ 'content-type': type = '' }: IncomingHttpHeaders, text: string): unknown {
  if (!isJson(mediaTypeOf(type))) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

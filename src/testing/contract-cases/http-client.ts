import { Agent, request as requestHttp } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import { Agent as SecureAgent, request as requestHttps } from 'node:https';

/** Headers to send; a list is a header that is sent more than once. */
export type SentHeaders = Readonly<Record<string, string | readonly string[]>>;

/** A request to the API under test. */
export interface ApiRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: SentHeaders;
  readonly body: string | undefined;
}

/** A response of the API under test. */
export interface ApiResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The parsed body, when it is JSON. */
  readonly body: unknown;
  /** Client port of the connection. */
  readonly localPort: number | undefined;
}

/** Sends requests to one server. */
export type Send = (request: ApiRequest) => Promise<ApiResponse>;

const TIMEOUT_MS = 10_000;

/** Makes a client with keep-alive connections that do not keep the process alive. */
export function httpClient(origin: URL): Send {
  const [agent, open] =
    origin.protocol === 'https:'
      ? [new SecureAgent({ keepAlive: true }), requestHttps]
      : [new Agent({ keepAlive: true }), requestHttp];

  return function send({ method, target, headers, body }) {
    return new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
      const options = { agent, method, headers: { ...headers, ...length }, timeout: TIMEOUT_MS };
      const request = open(new URL(target, origin), options, (response) => {
        const { statusCode: status = 0, headers: received } = response;
        const { localPort } = response.socket;
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.once('error', reject);
        response.once('end', () => {
          resolve({ status, headers: received, text, body: parseJson(received['content-type'], text), localPort });
        });
      });
      request.once('timeout', () => request.destroy(new Error(`no response within ${TIMEOUT_MS} ms`)));
      request.once('error', reject);
      request.end(body);
    });
  };
}

/** The media type of a Content-Type: without parameters, in lower case (RFC 9110 section 8.3.1). */
export function mediaTypeOf(contentType: string | undefined): string {
  return contentType === undefined ? 'none' : (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();
}

/** Whether a media type is JSON (RFC 6839 section 3.1). */
export function isJson(mediaType: string): boolean {
  return /[/+]json$/.test(mediaType);
}

function parseJson(contentType: string | undefined, text: string): unknown {
  if (!isJson(mediaTypeOf(contentType))) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

import * as http from 'node:http';
import type * as Https from 'node:https';
import { pipeline, type Readable } from 'node:stream';
import type * as Zlib from 'node:zlib';
import { ownMembers } from '../core/objects';
import { networkCodeOf, type HttpRequest, type HttpResponse } from './transport';

/* eslint-disable @typescript-eslint/no-require-imports -- TLS and decoders are loaded with the first response that needs them */

/** Sends a request by the global agents of node:http and node:https: proxies and certificates are those of the process. */
export function sendOverNode(url: string, request: HttpRequest, isRepeated = false): Promise<HttpResponse> {
  const { signal, headers, form } = request;
  const target = new URL(url);
  const { request: open } = target.protocol === 'https:' ? (require('node:https') as typeof Https) : http;
  return new Promise((resolve, reject) => {
    let hasResponse = false;
    const options = ownMembers({
      method: form === undefined ? 'GET' : 'POST',
      headers: ownMembers({ 'accept-encoding': 'gzip, deflate, br', ...headers }),
      signal,
      // The limit of an agent is for idle connections: a long poll takes longer.
      timeout: 0,
    });
    const sent = open(target, options, (response) => {
      hasResponse = true;
      resolve(responseOf(response));
    });
    sent.on('error', (error) => {
      // The server may close an idle connection just as it is used again (RFC 9112 section 9.3.1).
      const isClosed = sent.reusedSocket && /^(ECONNRESET|EPIPE)$/.test(networkCodeOf(error) ?? '');
      if (hasResponse || form !== undefined || !isClosed || isRepeated || signal.aborted) reject(error);
      else resolve(sendOverNode(url, request, true));
    });
    sent.end(form);
  });
}

function responseOf(response: http.IncomingMessage): HttpResponse {
  const { rawHeaders } = response;
  // Node's other views of them read inherited members of the object that they fill.
  const header = (name: string): string | undefined => {
    const values = rawHeaders.filter((_value, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name);
    return values.length === 0 ? undefined : values.join(', ');
  };
  const content = decoded(response, header('content-encoding') ?? '');
  const body = {
    [Symbol.asyncIterator]: (): AsyncIterator<Uint8Array> =>
      content[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>,
    cancel: () => content.destroy(),
  };
  return { status: response.statusCode ?? 0, header, body };
}

/** Codings of one response that are decoded, at most: each can make much of little. */
const MAX_CODINGS = 2;

/** The content without its codings (RFC 9110 section 8.4); one that is not asked for stays, and is then not what was expected. */
function decoded(response: http.IncomingMessage, header: string): Readable {
  const codings = header
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((coding) => coding !== '' && coding !== 'identity');
  if (codings.length === 0) return response;
  const { createBrotliDecompress, createGunzip } = require('node:zlib') as typeof Zlib;
  const decoders = codings.reverse().map((coding) => {
    if (coding === 'br') return createBrotliDecompress();
    if (coding === 'deflate') return inflate;
    return coding === 'gzip' || coding === 'x-gzip' ? createGunzip() : undefined;
  });
  if (decoders.length > MAX_CODINGS || decoders.includes(undefined)) return response;
  // Who reads the last stream gets the error.
  return pipeline([response, ...(decoders as NodeJS.ReadWriteStream[])], () => undefined) as unknown as Readable;
}

/** `deflate` is the format of zlib; some servers send it without its header (RFC 9110 section 8.4.1.2). */
async function* inflate(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const { createInflate, createInflateRaw } = require('node:zlib') as typeof Zlib;
  const chunks = source[Symbol.asyncIterator]();
  const first = await chunks.next();
  if (first.done === true) return;
  const all = async function* (): AsyncGenerator<Buffer> {
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => chunks };
  };
  const decoder = ((first.value[0] ?? 0) & 0x0f) === 8 ? createInflate() : createInflateRaw();
  yield* pipeline(all(), decoder, () => undefined) as AsyncIterable<Buffer>;
}

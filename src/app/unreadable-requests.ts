import { STATUS_CODES } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A request that was refused before any handler had it: Node could not parse it, or it arrived too slowly. */
export interface UnreadableRequest {
  /** Status of the response. */
  readonly status: number;
  /** Node's error code, such as `HPE_INVALID_METHOD`; nothing of the request itself. */
  readonly code: string;
}

interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
}

const INVALID: Refusal = {
  status: 400,
  code: 'invalid_request',
  detail: 'The request could not be read: its request line, a header or its framing is not what RFC 9112 has.',
};

/** By node's code; everything else is {@link INVALID}. */
const REFUSALS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    code: 'request_header_fields_too_large',
    detail: 'Request line and headers are larger than accepted here, 16 KiB together.',
  },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: {
    status: 413,
    code: 'payload_too_large',
    detail: 'The extensions of a chunk are larger than accepted here.',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    code: 'request_timeout',
    detail: 'The request did not arrive in time: send its head within 10 s and all of it within 30 s.',
  },
};

/**
 * Refuses a request that Node cannot parse with a problem body (RFC 9457), and closes the connection. Sends nothing after
 * the response to the same request: when its body is invalid, a second response would count as that to the next request
 * (RFC 9112 section 9.2).
 *
 * @param latest - the response to the last request of the connection whose head was valid
 * @returns what was refused; `undefined` if a handler has the request already: its response then has this status
 */
export function refuseUnreadable(
  { code = '' }: NodeJS.ErrnoException,
  socket: Socket,
  latest: ServerResponse | undefined,
  problemTypes?: string,
): UnreadableRequest | undefined {
  const hasResponse = latest && (latest.req.complete ? isPending(latest) : latest.headersSent);
  // Bytes after the request that said `Connection: close`.
  const isOver = code === 'HPE_CLOSED_CONNECTION';
  const refusal = socket.writable && !hasResponse && !isOver ? (REFUSALS[code] ?? INVALID) : undefined;
  if (refusal) socket.write(responseOf(refusal, problemTypes));
  socket.destroySoon();
  if (!refusal) return undefined;
  if (latest?.req.complete === false) {
    latest.statusCode = refusal.status;
    return undefined;
  }
  return { status: refusal.status, code };
}

/** Not written yet, or waiting for an earlier response. Since Node 24 a written one is finished only a turn later. */
function isPending(response: ServerResponse): boolean {
  return !response.writableEnded || response.writableLength > (response.socket?.writableLength ?? 0);
}

function responseOf({ status, code, detail }: Refusal, problemTypes: string | undefined): string {
  const title = STATUS_CODES[status];
  const type = problemTypes === undefined ? 'about:blank' : problemTypes + code;
  const body = JSON.stringify({ type, title, status, detail, code });
  return [
    `HTTP/1.1 ${status} ${title}`,
    'Content-Type: application/problem+json; charset=utf-8',
    `Content-Length: ${body.length}`,
    'Cache-Control: no-store',
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}

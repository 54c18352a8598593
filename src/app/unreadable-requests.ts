import { STATUS_CODES } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A request that was refused before any handler had it: node's parser could not read it, or it came too late. */
export interface UnreadableRequest {
  /** What it was answered. */
  readonly status: number;
  /** Node's word for why, such as `HPE_INVALID_METHOD`; nothing of the request itself. */
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
 * Answers what node's parser could not read with a problem body (RFC 9457), and closes the connection. Nothing is said
 * behind an answer to the same request: when its body breaks off, a second one would count for the request that comes
 * next (RFC 9112 section 9.2).
 *
 * @param latest - the answer to the last request of the connection whose head could be read
 * @returns what was refused, unless a handler has it already: the answer that it could not give then has its status
 */
export function refuseUnreadable(
  { code = '' }: NodeJS.ErrnoException,
  socket: Socket,
  latest: ServerResponse | undefined,
): UnreadableRequest | undefined {
  const isAnswered = latest && (latest.req.complete ? isPending(latest) : latest.headersSent);
  // Bytes behind a request that was said to be the last one of its connection.
  const isOver = code === 'HPE_CLOSED_CONNECTION';
  const refusal = socket.writable && !isAnswered && !isOver ? (REFUSALS[code] ?? INVALID) : undefined;
  if (refusal) socket.write(answerOf(refusal));
  socket.destroySoon();
  if (!refusal) return undefined;
  if (latest?.req.complete === false) {
    latest.statusCode = refusal.status;
    return undefined;
  }
  return { status: refusal.status, code };
}

/** Not written yet, or behind an earlier answer that is not. Since Node 24 a written one is finished only a turn later. */
function isPending(answer: ServerResponse): boolean {
  return !answer.writableEnded || answer.writableLength > (answer.socket?.writableLength ?? 0);
}

function answerOf({ status, code, detail }: Refusal): string {
  const title = STATUS_CODES[status];
  const body = JSON.stringify({ type: 'about:blank', title, status, detail, code });
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

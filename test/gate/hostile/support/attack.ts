import type { Reason } from '../../../../src/gate';
import { WIRE } from '../../../support/refusals';
import { GOOD } from './forge';

/** One row of the table: an attack, where it comes from, and the response it must get. */
export interface Attack {
  readonly name: string;
  /** RFC section, CVE, or named incident. */
  readonly source: string;
  /** The token of an otherwise ordinary `GET /v1/orders`, or the bytes of a request (latin1). */
  readonly input: { readonly token: string } | { readonly request: string };
  readonly expected: Expected;
}

/** The exact response. */
export interface Expected {
  /** `undefined`: the connection is closed without one. */
  readonly status: number | undefined;
  /** `error` of the challenge; `null`: a challenge without one; absent: no challenge. */
  readonly error?: string | null;
  /** `code` of the problem body; absent: no problem body. */
  readonly code?: string;
  /** `scope` of the challenge. */
  readonly scopes?: readonly string[];
  /** Requests that reach a handler; absent: none. */
  readonly reached?: readonly string[];
  /** Node's parser refuses it before any handler: the log has no other detail, and the connection is closed. */
  readonly byParser?: true;
  /** Node refuses it before our code runs: no body, nothing in the log. */
  readonly byNode?: true;
  /** The next request reached the app and its log, although its response was not sent. */
  readonly nextLogged?: boolean;
  /**
   * The outcome of a good request that follows on the same connection: it is `served` (the default), the connection is
   * `cut`, it is `swallowed` by what was sent before, or it is `refused` with 400 because of unreadable bytes before it.
   */
  readonly next?: 'served' | 'cut' | 'swallowed' | 'refused';
}

/** Refused for a reason of the gate: status, challenge and code from the independent table of the tests. */
export function refused(reason: Reason, more: Pick<Expected, 'scopes' | 'next'> = {}): Expected {
  const { status, error = null } = WIRE[reason];
  return { status, error, code: reason, ...more };
}

/** Not refused by the gate: a problem body without a challenge. */
export function problem(status: number, code: string, more: Pick<Expected, 'next'> = {}): Expected {
  return { status, code, ...more };
}

/** Refused by Node's parser. */
export function unreadable(status: 400 | 431 = 400): Expected {
  const code = status === 400 ? 'invalid_request' : 'request_header_fields_too_large';
  return { status, code, byParser: true, next: 'cut' };
}

/** Refused by Node after parsing: no body, nothing in the log. */
export function refusedByNode(): Expected {
  return { status: 400, byNode: true, next: 'cut' };
}

/** Ended without a response. */
export const cutOff: Expected = { status: undefined, byNode: true, next: 'cut' };

/** Does no harm: the token is right, and what was added to it or around it changes nothing. */
export function harmless(reached = 'GET /v1/orders'): Expected {
  return { status: 200, reached: [reached] };
}

/** A request of these lines, with a Host and an empty line after them. */
export function request(lines: readonly string[], body = ''): string {
  return [...lines, 'Host: api.test', '', body].join('\r\n');
}

/** `GET /v1/orders` with these header lines. */
export function get(...headers: readonly string[]): string {
  return request(['GET /v1/orders HTTP/1.1', ...headers]);
}

/** A request line with a good token after it. */
export function withGoodToken(requestLine: string, ...headers: readonly string[]): string {
  return request([requestLine, `Authorization: Bearer ${GOOD}`, ...headers]);
}

/** `POST /v1/orders` with a body and its length. */
export function post(type: string, body: string, ...headers: readonly string[]): string {
  const length = Buffer.byteLength(body, 'latin1');
  return request(['POST /v1/orders HTTP/1.1', `Content-Type: ${type}`, `Content-Length: ${length}`, ...headers], body);
}

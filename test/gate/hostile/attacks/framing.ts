import { refused, refusedByNode, unreadable } from '../support/attack';
import type { Attack } from '../support/attack';
import { GOOD } from '../support/forge';
import { NODE_MAJOR } from '../support/node-version';

const AUTH = `Authorization: Bearer ${GOOD}`;
const MISSING = refused('missing_token');
const UNREADABLE = unreadable();
/** The gate responds before the body is read: a broken body, or one of unknown length, then ends the connection. */
const THEN_CUT = refused('missing_token', { next: 'cut' });
const THEN_SWALLOWED = refused('missing_token', { next: 'swallowed' });
const FIRST = 'GET /v1/orders HTTP/1.1\r\nHost: a';
/** A smuggled request. */
const SMUGGLED = `GET /v1/orders HTTP/1.1\r\nHost: api.test\r\n${AUTH}\r\n\r\n`;

/** A POST without a token with these framing headers, and these bytes after its head. */
function framing(
  name: string,
  source: string,
  headers: readonly string[],
  rest = SMUGGLED,
  expected = UNREADABLE,
): Attack {
  const bytes = ['POST /v1/orders HTTP/1.1', 'Host: api.test', ...headers, '', rest].join('\r\n');
  return { name: `framing: ${name}`, source, input: { request: bytes }, expected };
}

function bytes(name: string, source: string, text: string, expected = UNREADABLE): Attack {
  return { name: `framing: ${name}`, source, input: { request: text }, expected };
}

const SMUGGLING = 'RFC 9112 section 6.1, Watchfire 2005, "HTTP Request Smuggling"';
const TE = ['Transfer-Encoding: chunked'];
const CHUNKED = `0\r\n\r\n${SMUGGLED}`;

const LENGTHS: readonly Attack[] = [
  framing('Content-Length and Transfer-Encoding', SMUGGLING, ['Content-Length: 5', ...TE], CHUNKED),
  framing('Transfer-Encoding and Content-Length', SMUGGLING, [...TE, 'Content-Length: 5'], CHUNKED),
  framing('two lengths', 'RFC 9112 section 6.3', ['Content-Length: 0', `Content-Length: ${SMUGGLED.length}`]),
  framing('two equal lengths', 'RFC 9112 section 6.3', ['Content-Length: 0', 'Content-Length: 0']),
  framing('a list of lengths', 'RFC 9112 section 6.3', ['Content-Length: 0, 0']),
  framing('a length with a sign', 'RFC 9110 section 8.6', ['Content-Length: +0']),
  framing('a negative length', 'RFC 9110 section 8.6', ['Content-Length: -1']),
  framing('a hexadecimal length', 'RFC 9110 section 8.6', ['Content-Length: 0x0']),
  framing('a length beyond 2^64', 'RFC 9110 section 8.6', ['Content-Length: 18446744073709551616']),
  framing('a length with a blank inside', 'CVE-2024-27982 (Node)', ['Content-Length: 1 0']),
  framing('a blank in front of Content-Length', 'CVE-2024-27982 (Node)', [' Content-Length: 0']),
  framing('an empty length', 'RFC 9110 section 8.6', ['Content-Length:']),
  framing('a NUL in the length', 'RFC 9110 section 5.5', ['Content-Length: 0\0']),
  framing('more announced than sent', 'CWE-400', ['Content-Length: 100000'], '', THEN_SWALLOWED),
];

function encoding(name: string, source: string, header: string, expected = UNREADABLE): Attack {
  return framing(name, source, [header], CHUNKED, expected);
}

const OBFUSCATED: readonly Attack[] = [
  encoding('chunkedx', 'CVE-2022-32213 (Node)', 'Transfer-Encoding: chunkedx', THEN_CUT),
  encoding('xchunked', 'CVE-2022-32213 (Node)', 'Transfer-Encoding: xchunked', THEN_CUT),
  encoding('chunked, identity', 'CVE-2022-32213 (Node)', 'Transfer-Encoding: chunked, identity'),
  encoding('chunked twice', 'RFC 9112 section 6.1', 'Transfer-Encoding: chunked, chunked'),
  encoding('"chunked"', 'RFC 9112 section 6.1', 'Transfer-Encoding: "chunked"', THEN_CUT),
  encoding('identity', 'RFC 9112 section 6.1', 'Transfer-Encoding: identity', THEN_CUT),
  encoding('a vertical tab in front', 'CVE-2019-15605 (Node)', 'Transfer-Encoding: \vchunked'),
  encoding('a vertical tab after', 'CVE-2019-15605 (Node)', 'Transfer-Encoding: chunked\v'),
  encoding('NUL after', 'CVE-2019-15605 (Node)', 'Transfer-Encoding: chunked\0'),
  encoding('a blank in front of the colon', 'CVE-2021-22959 (Node)', 'Transfer-Encoding : chunked'),
  encoding('folded', 'CVE-2022-32215 (Node)', 'Transfer-Encoding:\r\n chunked'),
  encoding('a bare CR in the line before', 'CVE-2023-30589 (Node)', 'X: y\rTransfer-Encoding: chunked'),
  framing('two encodings, the second unknown', 'CVE-2022-32213 (Node)', [...TE, 'Transfer-Encoding: x'], CHUNKED),
  framing(
    'empty Transfer-Encoding: no body',
    'RFC 9112 section 6.1',
    ['Transfer-Encoding:'],
    CHUNKED,
    // Since Node 22 the parser itself refuses it.
    NODE_MAJOR < 22 ? refused('missing_token', { next: 'refused' }) : unreadable(),
  ),
];

const LONG = 'a'.repeat(100_000);
const SMUGGLED_CHUNK = `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`;

const CHUNKS: readonly Attack[] = [
  framing('chunk extensions', 'CVE-2021-22960 (Node)', TE, `0;a=b;c="d"\r\n\r\n`, MISSING),
  framing('a chunk extension without end', 'CVE-2024-22019 (Node)', TE, `1;${LONG}\r\nx\r\n0\r\n\r\n`, THEN_CUT),
  framing('a chunk size with a sign', 'RFC 9112 section 7.1', TE, `+1\r\nx\r\n0\r\n\r\n`, THEN_CUT),
  framing('a chunk size with 0x', 'RFC 9112 section 7.1', TE, `0x1\r\nx\r\n0\r\n\r\n`, THEN_CUT),
  framing('a chunk size beyond 2^64', 'RFC 9112 section 7.1', TE, `10000000000000000\r\nx\r\n`, THEN_CUT),
  framing('a chunk longer than it says', 'RFC 9112 section 7.1', TE, `1\r\nxyz\r\n0\r\n\r\n`, THEN_CUT),
  framing('a chunk ended by LF alone', 'RFC 9112 section 7.1', TE, `1\nx\n0\n\n`, THEN_CUT),
  framing('a request in the trailers', 'RFC 9110 section 6.5', TE, `0\r\nX: y\r\n\r\n`, MISSING),
  framing('a smuggled request in a chunk', SMUGGLING, TE, SMUGGLED_CHUNK, MISSING),
  framing('a smuggled request as the body', SMUGGLING, [`Content-Length: ${SMUGGLED.length}`], SMUGGLED, MISSING),
];

const BAD_ONE = `GET /v1/items HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\n\r\n`;

const LINES: readonly Attack[] = [
  bytes('HTTP/0.9', 'RFC 1945 section 4.1', 'GET /v1/orders\r\n\r\n', THEN_CUT),
  bytes('HTTP/1.0 without a host', 'RFC 1945', `GET /v1/orders HTTP/1.0\r\n\r\n`, THEN_CUT),
  bytes('HTTP/1.2', 'RFC 9110 section 2.5', 'GET /v1/orders HTTP/1.2\r\nHost: a\r\n\r\n'),
  bytes('HTTP/2.0', 'RFC 9112 section 2.3', 'GET /v1/orders HTTP/2.0\r\nHost: a\r\n\r\n', THEN_CUT),
  bytes('http/1.1 in lower case', 'RFC 9112 section 2.3', 'GET /v1/orders http/1.1\r\nHost: a\r\n\r\n'),
  bytes('no host', 'RFC 9112 section 3.2', 'GET /v1/orders HTTP/1.1\r\n\r\n', {
    ...refusedByNode(),
    // Before Node 24 a response that cannot be sent never ends.
    nextLogged: NODE_MAJOR >= 24,
  }),
  bytes('LF alone', 'RFC 9112 section 2.2', `GET /v1/orders HTTP/1.1\nHost: a\n${AUTH}\n\n`),
  bytes('LF alone after one header', 'CVE-2022-35256 (Node)', `${FIRST}\nX: y\r\n\r\n`),
  bytes('CR alone', 'CVE-2023-30589 (Node)', `GET /v1/orders HTTP/1.1\rHost: a\r\r`),
  bytes('a head ended by CR LF CR and a letter', 'CVE-2025-23167 (Node)', `${FIRST}\r\n\rX\r\n\r\n`),
  bytes('empty lines in front', 'RFC 9112 section 2.2: some may be skipped', `\r\n\r\n${FIRST}\r\n\r\n`, MISSING),
  bytes('a blank in front', 'RFC 9112 section 3', ` ${FIRST}\r\n\r\n`),
  bytes('two blanks in the request line', 'RFC 9112 section 3', `GET  /v1/orders HTTP/1.1\r\nHost: a\r\n\r\n`, MISSING),
  bytes('a tab in the request line', 'RFC 9112 section 3', `GET\t/v1/orders HTTP/1.1\r\nHost: a\r\n\r\n`),
  bytes('a blank in the path', 'RFC 9112 section 3.2', `GET /v1/or ders HTTP/1.1\r\nHost: a\r\n\r\n`),
  bytes('NUL in the path', 'CWE-158', `GET /v1/orders\0 HTTP/1.1\r\nHost: a\r\n\r\n`),
  bytes('a line break in the path', 'CWE-93', `GET /v1/orders\r\nX: y HTTP/1.1\r\nHost: a\r\n\r\n`, THEN_CUT),
  bytes('a response', 'RFC 9112 section 2.1', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'),
  bytes('TLS', 'RFC 8446 section 5.1', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'),
  bytes('a PROXY line', 'PROXY protocol 1', `PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\nGET /v1/orders HTTP/1.1\r\n\r\n`),
  bytes('Expect: 100-continue without a token', 'RFC 9110 section 10.1.1', expecting('100-continue'), THEN_CUT),
  bytes('Expect of something else', 'RFC 9110 section 10.1.1', expecting('telepathy'), { status: 417, byNode: true }),
  bytes('pipelined: a bad one in front of a good one', 'RFC 9112 section 9.3.2', BAD_ONE, refused('malformed_token')),
  bytes('connection closed on demand', 'RFC 9112 section 9.6', `${FIRST}\r\nConnection: close\r\n\r\n`, THEN_CUT),
];

function expecting(what: string): string {
  return `POST /v1/orders HTTP/1.1\r\nHost: a\r\nExpect: ${what}\r\nContent-Length: 0\r\n\r\n`;
}

export const FRAMING_ATTACKS: readonly Attack[] = [...LENGTHS, ...OBFUSCATED, ...CHUNKS, ...LINES];

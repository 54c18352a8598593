import { deflateSync, gzipSync } from 'node:zlib';
import { get, harmless, post, problem, refused, request } from '../support/attack';
import type { Attack, Expected } from '../support/attack';
import { GOOD } from '../support/forge';

const AUTH = `Authorization: Bearer ${GOOD}`;
const IN_QUERY = refused('token_in_query');
const IN_BODY = refused('token_in_body');
const MISSING = refused('missing_token');
const LARGE = problem(413, 'payload_too_large');
const FORM = 'application/x-www-form-urlencoded';

function row(name: string, source: string, bytes: string, expected: Expected): Attack {
  return { name, source, input: { request: bytes }, expected };
}

/** A request whose target continues like this. */
function target(name: string, source: string, rest: string, expected: Expected, ...headers: readonly string[]): Attack {
  return row(`query: ${name}`, source, request([`GET /v1/orders${rest} HTTP/1.1`, ...headers]), expected);
}

const QUERY_SOURCE = 'RFC 9700 section 4.3.2, RFC 6750 section 2.3';

function query(name: string, text: string, expected: Expected = IN_QUERY, source = QUERY_SOURCE): Attack {
  return row(`query: ${name}`, source, request([`GET /v1/orders?${text} HTTP/1.1`]), expected);
}

const INVALID_QUERY = problem(400, 'invalid_request');

const ABSOLUTE = `GET http://api.test/v1/orders?access_token=${GOOD} HTTP/1.1`;

const QUERY: readonly Attack[] = [
  query('access_token', `access_token=${GOOD}`),
  query('access_token, empty', 'access_token='),
  query('access_token without a value', 'access_token'),
  query('after others', `limit=1&access_token=${GOOD}`),
  query('twice', `access_token=${GOOD}&access_token=${GOOD}`),
  query('name encoded', `%61ccess_toke%6e=${GOOD}`),
  query('name wholly encoded', `%61%63%63%65%73%73%5F%74%6F%6B%65%6E=${GOOD}`),
  query('as a list', `access_token[]=${GOOD}`),
  query('as a list, encoded', `access_token%5B%5D=${GOOD}`),
  query('as an object', `access_token[a]=${GOOD}`),
  query('in brackets', `[access_token]=${GOOD}`),
  query('after a second question mark', `?access_token=${GOOD}`),
  query('encoded twice', `access%255ftoken=${GOOD}`, MISSING, 'RFC 3986 section 2.4: decoded once'),
  query('in another case', `Access_Token=${GOOD}`, MISSING, 'RFC 6750 section 2.3: names are case-sensitive'),
  query('after a semicolon', `limit=1;access_token=${GOOD}`, MISSING, 'WHATWG URL: not a separator'),
  query('under other names', `token=${GOOD}&jwt=${GOOD}&auth=${GOOD}`, MISSING),
  query('as id_token_hint and bearer', `bearer=${GOOD}&authorization=Bearer%20${GOOD}`, MISSING),
  target('and a good header', QUERY_SOURCE, `?access_token=${GOOD}`, IN_QUERY, AUTH),
  target('rubbish and a good header', QUERY_SOURCE, '?access_token=x', IN_QUERY, AUTH),
  target('in another case, and a good header', QUERY_SOURCE, '?Access_Token=x', INVALID_QUERY, AUTH),
  target('a broken encoding', 'RFC 3986 section 2.1', `?%zz&access_token=${GOOD}`, IN_QUERY),
  row('query: of an absolute target', 'RFC 9112 section 3.2.2', request([ABSOLUTE]), IN_QUERY),
  target('after a fragment', 'RFC 9112 section 3.2: no fragment in a target', `#access_token=${GOOD}`, MISSING),
  target('__proto__', 'CWE-1321', '?__proto__[access_token]=x', MISSING),
];

const BODY_SOURCE = 'RFC 9700 section 4.3.2, RFC 6750 section 2.2';
const form = (body: string, ...headers: readonly string[]): string => post(FORM, body, ...headers);
const json = (body: string, ...headers: readonly string[]): string => post('application/json', body, ...headers);
const MEDIA = problem(415, 'unsupported_media_type');

const LOUD_FORM = 'Application/X-WWW-Form-URLEncoded; charset=utf-8';
const BOTH = form(`access_token=${GOOD}`).replace('/v1/orders', '/v1/orders?access_token=x');

const FORMS: readonly Attack[] = [
  row('form: access_token', BODY_SOURCE, form(`access_token=${GOOD}`), IN_BODY),
  row('form: and a good header', BODY_SOURCE, form(`access_token=${GOOD}`, AUTH), IN_BODY),
  row('form: name encoded', BODY_SOURCE, form(`%61ccess%5ftoken=${GOOD}`), IN_BODY),
  row('form: as a list', BODY_SOURCE, form(`access_token[]=${GOOD}`), IN_BODY),
  row('form: type in another case, with a charset', BODY_SOURCE, post(LOUD_FORM, `access_token=${GOOD}`), IN_BODY),
  row('form: in Latin-1', BODY_SOURCE, post(`${FORM}; charset=iso-8859-1`, `access_token=${GOOD}`), IN_BODY),
  row('form: in UTF-16', BODY_SOURCE, post(`${FORM}; charset=utf-16`, `access_token=${GOOD}`), MEDIA),
  row('form: charset in the body', 'qs: charset sentinel', form(`utf8=%26%2310003%3B&access_token=${GOOD}`), IN_BODY),
  row('form: query and body', BODY_SOURCE, BOTH, IN_QUERY),
  row('form: on GET', BODY_SOURCE, form(`access_token=${GOOD}`).replace('POST', 'GET'), IN_BODY),
  row('form: chunked', 'RFC 9112 section 7.1', chunked(`access_token=${GOOD}`), IN_BODY),
  row('form: gzip', 'RFC 9110 section 8.4', compressed(gzipSync(`access_token=${GOOD}`), 'gzip'), IN_BODY),
  row('form: deflate', 'RFC 9110 section 8.4', compressed(deflateSync(`access_token=${GOOD}`), 'deflate'), IN_BODY),
  row('form: a gzip bomb', 'CWE-409', compressed(gzipSync(Buffer.alloc(10_000_000, 'a')), 'gzip'), LARGE),
  row('form: broken gzip', 'CWE-409', compressed(Buffer.from('no gzip'), 'gzip'), INVALID_QUERY),
  row('form: an unknown encoding', 'RFC 9110 section 8.4', compressed(Buffer.from('a=b'), 'zstd2'), MEDIA),
  row('form: 20 kB', 'CWE-770', form(`a=${'x'.repeat(20_000)}`), problem(413, 'payload_too_large')),
  row('form: 2,000 parameters', 'CWE-770', form(Array.from({ length: 2_000 }, (_, i) => `a${i}=`).join('&')), LARGE),
  row('form: __proto__', 'CWE-1321', form('__proto__[access_token]=x&constructor[prototype][access_token]=x'), MISSING),
];

function chunked(body: string): string {
  return request(
    ['POST /v1/orders HTTP/1.1', `Content-Type: ${FORM}`, 'Transfer-Encoding: chunked'],
    `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  );
}

function compressed(body: Buffer, encoding: string): string {
  return post(FORM, body.toString('latin1'), `Content-Encoding: ${encoding}`);
}

const PART = `--x\r\nContent-Disposition: form-data; name="access_token"\r\n\r\n${GOOD}\r\n--x--\r\n`;
const MULTIPART = 'multipart/form-data; boundary=x';
const JSON_BODY = JSON.stringify({ access_token: GOOD });

const JSON_SOURCE = 'RFC 6750 section 2.2';

const BODIES: readonly Attack[] = [
  row('multipart: access_token', 'RFC 6750 section 2.2: form encoding only', post(MULTIPART, PART), MISSING),
  row('multipart: and a good header', 'RFC 6750 section 2.2', post(MULTIPART, PART, AUTH), MEDIA),
  row('JSON: access_token', 'RFC 6750 section 2.2: data, not a token', json(JSON_BODY), MISSING),
  row('JSON: and a good header: data, of another shape', JSON_SOURCE, json(JSON_BODY, AUTH), INVALID_QUERY),
  row('JSON: without a type', 'RFC 9110 section 8.3', post('', JSON_BODY), MISSING),
  row('text: access_token', 'RFC 6750 section 2.2', post('text/plain', `access_token=${GOOD}`), MISSING),
  row('JSON: __proto__ with a good header', 'CWE-1321', json('{"__proto__":{"polluted":true}}', AUTH), INVALID_QUERY),
  row('JSON: 100,000 brackets with a good header', 'CWE-674', json('['.repeat(99_000), AUTH), INVALID_QUERY),
  row('JSON: 200 kB with a good header', 'CWE-770', json(`"${'x'.repeat(200_000)}"`, AUTH), LARGE),
];

function header(name: string, line: string, source = 'RFC 6750 section 2: no other way'): Attack {
  return row(`other headers: ${name}`, source, get(line), MISSING);
}

const SUBREQUEST = 'middleware:middleware:middleware';
const COOKIE = `Cookie: access_token=${GOOD.slice(0, -4)}`;
const CHUNKED = ['POST /v1/orders HTTP/1.1', 'Transfer-Encoding: chunked', 'Trailer: Authorization'];
const IN_TRAILER = request(CHUNKED, `0\r\n${AUTH}\r\n\r\n`);

const HEADERS: readonly Attack[] = [
  header('Cookie access_token', `Cookie: access_token=${GOOD}; token=${GOOD}`, 'CWE-352'),
  header('Cookie Authorization', `Cookie: Authorization=Bearer ${GOOD}`, 'CWE-352'),
  header('Proxy-Authorization', `Proxy-Authorization: Bearer ${GOOD}`, 'RFC 9110 section 11.7.2'),
  header('X-Forwarded-Authorization', `X-Forwarded-Authorization: Bearer ${GOOD}`),
  header('X-Original-Authorization', `X-Original-Authorization: Bearer ${GOOD}`),
  header('X-Access-Token', `X-Access-Token: ${GOOD}`),
  header('X-Auth-Token', `X-Auth-Token: ${GOOD}`),
  header('X-Api-Key', `X-Api-Key: ${GOOD}`),
  header('Sec-WebSocket-Protocol', `Sec-WebSocket-Protocol: access_token, ${GOOD}`, 'Kubernetes'),
  header('X-Amzn-Oidc-Data', `X-Amzn-Oidc-Data: ${GOOD}`, 'AWS load balancers: a header that only they may set'),
  header('X-Forwarded-User and X-Remote-User', 'X-Forwarded-User: pos-17\r\nX-Remote-User: pos-17', 'CWE-290'),
  header('Remote-User', 'Remote-User: pos-17', 'CWE-290'),
  header('X-Client-Id and X-Scope', 'X-Client-Id: pos-17\r\nX-Scope: orders:read', 'CWE-290'),
  header('X-Original-URL', 'X-Original-URL: /livez', 'CVE-2018-14773 (Symfony)'),
  header('X-Rewrite-URL', 'X-Rewrite-URL: /livez', 'CVE-2018-14773 (Symfony)'),
  header('X-Forwarded-For loopback', 'X-Forwarded-For: 127.0.0.1\r\nX-Real-IP: 127.0.0.1', 'CWE-348'),
  header('Forwarded loopback', 'Forwarded: for=127.0.0.1', 'CWE-348'),
  header('X-Middleware-Subrequest', `X-Middleware-Subrequest: ${SUBREQUEST}`, 'CVE-2025-29927 (Next.js)'),
  header('Connection: Authorization', 'Connection: keep-alive, Authorization', 'RFC 9110 section 7.6.1: hop-by-hop'),
  header('Trailer', `Trailer: Authorization`, 'RFC 9110 section 6.5.1'),
  row('other headers: Authorization as a trailer', 'RFC 9110 section 6.5.1: not in trailers', IN_TRAILER, MISSING),
  row('a good header next to a cookie with another token', 'RFC 6750 section 2', get(AUTH, COOKIE), harmless()),
];

export const ELSEWHERE_ATTACKS: readonly Attack[] = [...QUERY, ...FORMS, ...BODIES, ...HEADERS];

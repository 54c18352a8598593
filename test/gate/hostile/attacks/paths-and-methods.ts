import { get, harmless, post, problem, refused, request, unreadable, cutOff, withGoodToken } from '../support/attack';
import type { Attack, Expected } from '../support/attack';
import { GOOD } from '../support/forge';
import { token } from '../../../support/issuer';

const AUTH = `Authorization: Bearer ${GOOD}`;
const MISSING = refused('missing_token');
const NOT_FOUND = problem(404, 'not_found');

/** A target without a token, and what a good token would get there: neither the gate nor the guards can be bypassed. */
function target(path: string, without: Expected, withToken: Expected, source = PATHS, what = path): readonly Attack[] {
  const row = (token: string, text: string, expected: Expected): Attack => {
    return { name: `path ${what}, ${token} token`, source, input: { request: text }, expected };
  };
  const line = `GET ${path} HTTP/1.1`;
  return [row('no', request([line]), without), row('good', withGoodToken(line), withToken)];
}

const PATHS = 'RFC 3986 section 6.2.2: what one side normalises and the other does not';

const TARGETS: readonly Attack[] = [
  ...target('//v1/orders', NOT_FOUND, NOT_FOUND),
  ...target('/v1//orders', MISSING, NOT_FOUND),
  ...target('/v1/orders/', MISSING, harmless()),
  ...target('/V1/Orders', MISSING, harmless()),
  ...target('/v1/../v1/orders', MISSING, NOT_FOUND),
  ...target('/livez/../v1/orders', NOT_FOUND, NOT_FOUND, 'CVE-2021-41773 (Apache)'),
  ...target('/v1/./orders', MISSING, NOT_FOUND),
  ...target('/v1/%2e%2e/v1/orders', MISSING, NOT_FOUND),
  ...target('/%2e/v1/orders', NOT_FOUND, NOT_FOUND),
  ...target('/v1%2forders', NOT_FOUND, NOT_FOUND),
  ...target('/v1/orders%2f', MISSING, NOT_FOUND),
  ...target('/v1%5corders', NOT_FOUND, NOT_FOUND),
  ...target('\\v1\\orders', unreadable(), unreadable()),
  ...target('/v1\\orders', NOT_FOUND, NOT_FOUND),
  ...target('/%761/orders', NOT_FOUND, NOT_FOUND),
  ...target('/v1/%6frders', MISSING, NOT_FOUND),
  ...target('/v1/orders;a=1', MISSING, NOT_FOUND, 'CVE-2020-11989 (Shiro)'),
  ...target('/v1;a=1/orders', NOT_FOUND, NOT_FOUND, 'CVE-2020-11989 (Shiro)'),
  ...target('/livez;/v1/orders', NOT_FOUND, NOT_FOUND),
  ...target('/v1/orders%00', MISSING, NOT_FOUND, 'CWE-158'),
  ...target('/v1/orders%0d%0aX:y', MISSING, NOT_FOUND, 'CWE-113'),
  ...target('/v1/orders%', MISSING, NOT_FOUND),
  ...target('/v1/orders/%ff', MISSING, problem(400, 'invalid_request')),
  ...target('/v1/orders/%c0%ae', MISSING, problem(400, 'invalid_request'), 'CVE-2000-0884 (IIS)'),
  ...target('/v1/orders.json', MISSING, NOT_FOUND, 'Spring suffix patterns'),
  ...target('/v1/orders%20', MISSING, NOT_FOUND),
  ...target('/v1/orders#', MISSING, harmless(), 'RFC 9112 section 3.2'),
  ...target('/v1/orders/__proto__', MISSING, NOT_FOUND, 'CWE-1321'),
  ...target('/v1/constructor', MISSING, NOT_FOUND, 'CWE-1321'),
  ...target('/v1', MISSING, NOT_FOUND),
  ...target('/v1orders', NOT_FOUND, NOT_FOUND),
  ...target(`/v1/${'a'.repeat(15_000)}`, MISSING, NOT_FOUND, 'CWE-400', 'of 15 kB'),
  ...target(`/v1${'/'.repeat(5_000)}orders`, MISSING, NOT_FOUND, 'CWE-1333', 'of 5,000 slashes'),
  ...target('/v1/orders/\xc3\xa4', unreadable(), unreadable(), 'RFC 3986 section 2', 'beyond ASCII'),
];

const ABSOLUTE = 'RFC 9112 section 3.2.2: must be taken';

const FORMS: readonly Attack[] = [
  ...target('http://other.test/v1/orders', MISSING, harmless(), ABSOLUTE),
  ...target('http://a:b@api.test/v1/orders', MISSING, harmless(), 'RFC 9110 section 4.2.4'),
  ...target('HTTP://API.TEST/v1/orders', MISSING, harmless(), ABSOLUTE),
  ...target('ftp://api.test/v1/orders', MISSING, harmless(), ABSOLUTE),
  ...target('//other.test/v1/orders', NOT_FOUND, NOT_FOUND, 'RFC 3986 section 4.2'),
  ...target('*', NOT_FOUND, NOT_FOUND, 'RFC 9112 section 3.2.4'),
  ...target('v1/orders', unreadable(), unreadable(), 'RFC 9112 section 3.2'),
  ...target('?/v1/orders', unreadable(), unreadable(), 'RFC 9112 section 3.2.1'),
];

function method(name: string, lines: readonly string[], expected: Expected, source = METHODS): Attack {
  return { name: `method ${name}`, source, input: { request: request(lines) }, expected };
}

const METHODS = 'RFC 9110 section 9';
const NOT_ALLOWED = problem(405, 'method_not_allowed');
/** Node reads nothing more from a connection that asked for an upgrade. */
const DEAF = refused('missing_token', { next: 'swallowed' });

const CROSS_SITE_TRACING = 'CERT VU#867593 (cross-site tracing)';
const upgrade = (to: string, ...more: readonly string[]): readonly string[] => [
  'GET /v1/orders HTTP/1.1',
  'Connection: Upgrade',
  `Upgrade: ${to}`,
  ...more,
];

const METHOD_ROWS: readonly Attack[] = [
  method('HEAD without a token', ['HEAD /v1/orders HTTP/1.1'], MISSING),
  method('HEAD with a bad token', ['HEAD /v1/orders HTTP/1.1', 'Authorization: Bearer x'], refused('malformed_token')),
  method('TRACE without a token', ['TRACE /v1/orders HTTP/1.1'], MISSING, CROSS_SITE_TRACING),
  method('TRACE with a good token', ['TRACE /v1/orders HTTP/1.1', AUTH], NOT_ALLOWED, CROSS_SITE_TRACING),
  method('OPTIONS without a token', ['OPTIONS /v1/orders HTTP/1.1'], MISSING),
  method('OPTIONS *', ['OPTIONS * HTTP/1.1'], NOT_FOUND),
  method('PROPFIND without a token', ['PROPFIND /v1/orders HTTP/1.1'], MISSING),
  method('PURGE with a good token', ['PURGE /v1/orders HTTP/1.1', AUTH], NOT_ALLOWED),
  method('PUT with a good token', ['PUT /v1/orders HTTP/1.1', AUTH, 'Content-Length: 0'], NOT_ALLOWED),
  method('DELETE with a good token', ['DELETE /v1/orders/1 HTTP/1.1', AUTH], NOT_ALLOWED),
  method('CONNECT', ['CONNECT api.test:443 HTTP/1.1', AUTH], cutOff, 'RFC 9110 section 9.3.6'),
  method('CONNECT to a path', ['CONNECT /v1/orders HTTP/1.1', AUTH], cutOff, 'RFC 9112 section 3.2.3'),
  method('get', ['get /v1/orders HTTP/1.1', AUTH], unreadable(), 'RFC 9110 section 9.1: case-sensitive'),
  method('unknown', ['STEAL /v1/orders HTTP/1.1', AUTH], unreadable()),
  method('PRI, as HTTP/2 begins', ['PRI * HTTP/2.0'], unreadable(), 'RFC 9113 section 3.4'),
  method('upgrade to HTTP/2', upgrade('h2c', 'HTTP2-Settings: AAAA'), DEAF, 'BishopFox 2020, "h2c smuggling"'),
  method('upgrade to a WebSocket', upgrade('websocket'), DEAF, 'RFC 6455 section 4.2.1'),
];

const READER = token({ claims: { scope: 'orders:read' } });
const DENIED = refused('insufficient_scope', { scopes: ['orders:write'] });

/** A caller that may only read asks to be taken for a writer, or the other way round. */
function override(name: string, bytes: string, expected: Expected = DENIED): Attack {
  return { name, source: 'CWE-650', input: { request: bytes }, expected };
}
const READING = `Authorization: Bearer ${READER}`;
const IN_QUERY = ['POST /v1/orders?_method=GET HTTP/1.1', READING, 'Content-Length: 0'];
const FORM = 'application/x-www-form-urlencoded';

const OVERRIDES: readonly Attack[] = [
  ...['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override', '_method'].flatMap((name) => [
    override(`${name}: POST on a GET is a GET`, get(AUTH, `${name}: POST`), harmless()),
    override(`${name}: GET on a POST is a POST`, post('application/json', '{}', READING, `${name}: GET`)),
  ]),
  override('_method in the query', request(IN_QUERY)),
  override('_method in a form', post(FORM, '_method=GET', READING)),
];

/** A different spelling of a path that reaches the handler passes the same guard. */
const GUARDED: readonly Attack[] = ['/v1/orders/', '/V1/ORDERS', '/v1/orders#x', 'http://other.test/v1/orders'].map(
  (path) => ({
    name: `path ${path} requires the same scope`,
    source: PATHS,
    input: {
      request: request([`POST ${path} HTTP/1.1`, `Authorization: Bearer ${READER}`, 'Content-Length: 0']),
    },
    expected: DENIED,
  }),
);

const WRITER = token({ claims: { scope: 'orders:write' } });

/** Bodies of nearly 100 kB that are wrong everywhere: an array of mistakes must not cost the square of its length. */
const BODIES: readonly Attack[] = [
  ['33,000 items without members', `{"lines":[${'{},'.repeat(33_000)}{}]}`],
  ['50,000 items of the wrong type', `{"lines":[${'0,'.repeat(50_000)}0]}`],
  ['9,000 unknown members', `{${Array.from({ length: 9_000 }, (_, index) => `"m${index}":0`).join()}}`],
  ['50,000 nested arrays', '['.repeat(50_000) + ']'.repeat(50_000)],
].map(([what = '', body = '']) => ({
  name: `a body of ${what}`,
  source: 'CWE-407 (inefficient algorithmic complexity)',
  input: { request: post('application/json', body, `Authorization: Bearer ${WRITER}`) },
  expected: problem(400, 'invalid_request'),
}));

export const PATH_ATTACKS: readonly Attack[] = [
  ...TARGETS,
  ...FORMS,
  ...METHOD_ROWS,
  ...OVERRIDES,
  ...GUARDED,
  ...BODIES,
];

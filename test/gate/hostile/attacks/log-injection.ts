import { token } from '../../../support/issuer';
import { get, harmless, problem, refused, request, unreadable, withGoodToken } from '../support/attack';
import type { Attack, Expected } from '../support/attack';
import { GOOD } from '../support/forge';

const AUTH = `Authorization: Bearer ${GOOD}`;
const MISSING = refused('missing_token');
const LINE = '{"level":"info","msg":"request","status":200}';

function row(name: string, source: string, bytes: string, expected: Expected = MISSING): Attack {
  return { name: `log: ${name}`, source, input: { request: bytes }, expected };
}

/** A path without a token; the log must show it on one line, in ASCII. */
function path(name: string, text: string, source = 'CWE-117', expected?: Expected): Attack {
  return row(`${name} in the path`, source, request([`GET /v1/orders/${text} HTTP/1.1`]), expected);
}

const PATHS: readonly Attack[] = [
  path('CR LF, encoded,', `%0d%0a${encodeURIComponent(LINE)}`),
  path('quotes and braces', `"}${LINE.replaceAll(' ', '')}`),
  path('an escape sequence, encoded,', '%1b%5b2J', 'CWE-150'),
  path('a C1 control sequence', '\x9b2J', 'CWE-150: U+009B begins a sequence without ESC', unreadable()),
  path('a next-line character', '\x85x', 'CWE-117', unreadable()),
  path('a line separator in UTF-8', '\xe2\x80\xa8x', 'CWE-117', unreadable()),
  path('a right-to-left override', '\xe2\x80\xae', 'CVE-2021-42574 (Trojan Source)', unreadable()),
  path('a JNDI URL', '$%7Bjndi:ldap://127.0.0.1:9/a%7D', 'CVE-2021-44228 (Log4Shell)'),
  path('format directives', '%25s%25n%25x', 'CWE-134'),
  path('markup', '%3Cscript%3Ealert(1)%3C/script%3E', 'CWE-79: logs are read in browsers'),
  path('a formula', '=HYPERLINK(1)', 'CWE-1236: logs are read in spreadsheets'),
];

const [HEADER = '', PAYLOAD = '', SIGNATURE = ''] = GOOD.split('.');
const SECRETS = 'CWE-532';

/** A target that contains a token or a part of it. */
function secret(what: string, target: string, expected?: Expected): Attack {
  return row(what, SECRETS, request([`GET ${target} HTTP/1.1`]), expected);
}

const INVALID = problem(400, 'invalid_request');
const TOKEN_IN_PATH = `GET /v1/orders/${GOOD} HTTP/1.1`;
const BEGINNING_ENCODED = `%65yJ${HEADER.slice(3)}.%65%79J${PAYLOAD.slice(3)}.${SIGNATURE}`;
const BASIC = Buffer.from('pos-17:a-secret-of-the-client').toString('base64');
const DIGEST = '6629fae49393a05397450978507c4ef1';

const TOKENS: readonly Attack[] = [
  secret('a token in the path', `/v1/orders/${GOOD}`),
  row('a token in the path, with a good header', SECRETS, withGoodToken(TOKEN_IN_PATH), INVALID),
  secret('a token in the path, its beginning encoded', `/v1/orders/${BEGINNING_ENCODED}`),
  secret('a token in the path, its points encoded', `/v1/orders/${HEADER}%2E${PAYLOAD}%2e${SIGNATURE}`),
  secret('a token in the path, its points as slashes', `/v1/orders/${HEADER}/${PAYLOAD}/${SIGNATURE}`),
  secret('a signature alone in the path', `/v1/orders/${SIGNATURE}`),
  secret('a token as a path parameter', `/v1/orders;access_token=${GOOD}`),
  secret('a token after a fragment', `/v1/orders#access_token=${GOOD}`),
  secret('a token where no route is', `/${GOOD}`, problem(404, 'not_found')),
  secret('a token in the query under another name', `/v1/orders?t=${GOOD}`),
  secret('a token as the host', `http://${GOOD}/v1/orders`),
  secret('a token as the user of an absolute target', `http://u:${GOOD}@api.test/v1/orders`),
  row('a token in the referrer', SECRETS, get(`Referer: https://a.test/?access_token=${GOOD}`)),
  row('a token as user agent', SECRETS, get(`User-Agent: ${GOOD}`)),
  row('a token as request id', SECRETS, get(`X-Request-Id: ${GOOD}`)),
  row('the beginning of a token as request id', SECRETS, get(`X-Request-Id: ${GOOD.slice(0, 60)}`)),
  row('Basic credentials', SECRETS, get(`Authorization: Basic ${BASIC}`)),
  row('Digest credentials', SECRETS, get(`Authorization: Digest username="pos-17", response="${DIGEST}"`)),
];

/** A request id that is not accepted: the response and the log have a generated one. */
function id(name: string, value: string, source = 'CWE-117'): Attack {
  return row(`request id: ${name}`, source, get(`X-Request-Id: ${value}`));
}

const IDS: readonly Attack[] = [
  id('JSON', LINE),
  id('a C1 control sequence', '\x9b31m', 'CWE-150'),
  id('a next-line character', `a\x85${LINE}`),
  id('markup', '<script>alert(1)</script>', 'CWE-79'),
  id('a JNDI URL', '${jndi:ldap://127.0.0.1:9/a}', 'CVE-2021-44228 (Log4Shell)'),
  id('10 kB', 'a'.repeat(10_000), 'CWE-400'),
  id('empty', ''),
  id('__proto__', '__proto__', 'CWE-1321'),
  row('request id: twice', 'RFC 9110 section 5.3', get('X-Request-Id: a', 'X-Request-Id: b')),
  row('request id: the same on two requests', 'CWE-117', get('X-Request-Id: till-7', AUTH), harmless()),
];

/** Issuers sign what a client was registered with: an untrusted name. */
function client(name: string, clientId: string, source = 'CWE-117'): Attack {
  return {
    name: `log: client id with ${name}`,
    source,
    input: { token: token({ claims: { client_id: clientId } }) },
    expected: harmless(),
  };
}

const CLIENTS: readonly Attack[] = [
  client('CR LF and a line', `pos\r\n${LINE}`),
  client('a line separator', 'pos\u2028x\u2029y\u0085z'),
  client('an escape sequence', '\u001b[2J\u009b2Jpos', 'CWE-150'),
  client('NUL', 'pos\u0000'),
  client('DEL', 'pos\u007f\u007f', 'CWE-150'),
  client('a right-to-left override', '\u202esop', 'CVE-2021-42574 (Trojan Source)'),
  client('half of a surrogate pair', '\ud83d'),
  client('emoji', 'pos 🍔'),
  client('a quote and a backslash', 'pos"\\'),
  client('markup', '<script>alert(1)</script>', 'CWE-79'),
  client('8 kB', 'c'.repeat(8_000), 'CWE-400'),
];

export const LOG_ATTACKS: readonly Attack[] = [...PATHS, ...TOKENS, ...IDS, ...CLIENTS];

import { token } from '../../../support/issuer';
import { get, harmless, refused, unreadable } from '../support/attack';
import type { Attack, Expected } from '../support/attack';
import { GOOD } from '../support/forge';

const OTHER = token({ claims: { jti: 'another' } });
const MALFORMED = refused('malformed_authorization');
const MISSING = refused('missing_token');

/** One Authorization header of this value. */
function value(name: string, source: string, header: string, expected: Expected = MALFORMED): Attack {
  return { name: `Authorization: ${name}`, source, input: { request: get(`Authorization: ${header}`) }, expected };
}

function lines(name: string, source: string, headers: readonly string[], expected: Expected = MALFORMED): Attack {
  return { name: `Authorization: ${name}`, source, input: { request: get(...headers) }, expected };
}

const ONCE = 'RFC 9110 section 5.3: not a list, so one field line';

const REPEATED: readonly Attack[] = [
  lines('the same twice', ONCE, [`Authorization: Bearer ${GOOD}`, `Authorization: Bearer ${GOOD}`]),
  lines('two good tokens', ONCE, [`Authorization: Bearer ${GOOD}`, `Authorization: Bearer ${OTHER}`]),
  lines('Basic, then a good token', ONCE, ['Authorization: Basic YTpi', `Authorization: Bearer ${GOOD}`]),
  lines('a good token, then Basic, in another case', ONCE, [
    `Authorization: Bearer ${GOOD}`,
    'aUTHORIZATION: Basic YTpi',
  ]),
  lines('an empty one, then a good token', ONCE, ['Authorization:', `Authorization: Bearer ${GOOD}`]),
  lines('a hundred', ONCE, [
    ...Array.from({ length: 100 }, () => 'Authorization: Bearer x'),
    `Authorization: Bearer ${GOOD}`,
  ]),
  lines('twice with other headers between', ONCE, [
    `Authorization: Bearer ${GOOD}`,
    'Accept: */*',
    'Authorization: Bearer x',
  ]),
];

const JOINED = 'RFC 9110 section 11.6.2: one credential';

const COMMAS: readonly Attack[] = [
  value('two tokens joined with a comma', JOINED, `Bearer ${GOOD}, Bearer ${OTHER}`),
  value('Basic and Bearer joined with a comma', JOINED, `Basic YTpi, Bearer ${GOOD}`),
  value('Basic and Bearer joined without a blank', JOINED, `Basic YTpi,Bearer ${GOOD}`),
  value('Bearer and Basic joined with a comma', JOINED, `Bearer ${GOOD}, Basic YTpi`),
  value('a comma after', JOINED, `Bearer ${GOOD},`),
  value('a comma in front', JOINED, `, Bearer ${GOOD}`),
  value('parameters after the token', 'RFC 6750 section 2.1', `Bearer ${GOOD}, realm="api"`),
  value('the token as a parameter', 'RFC 6750 section 2.1', `Bearer token="${GOOD}"`),
  value('the token as a parameter, unquoted', 'RFC 6750 section 2.1', `Bearer access_token=${GOOD}`),
  value('in quotes', 'RFC 6750 section 2.1', `Bearer "${GOOD}"`),
  value('in angle brackets', 'RFC 6750 section 2.1', `Bearer <${GOOD}>`),
];

const SYNTAX = 'RFC 6750 section 2.1, RFC 9110 section 11.4';

const FIELD = 'RFC 9110 section 5.5';

const SHAPES: readonly Attack[] = [
  value('empty', SYNTAX, ''),
  value('Bearer alone', SYNTAX, 'Bearer'),
  value('Bearer and blanks', SYNTAX, 'Bearer    '),
  value('two tokens', SYNTAX, `Bearer ${GOOD} ${OTHER}`),
  value('Bearer twice', SYNTAX, `Bearer Bearer ${GOOD}`),
  value('a colon after the scheme', SYNTAX, `Bearer: ${GOOD}`),
  value('an equals sign after the scheme', SYNTAX, `Bearer=${GOOD}`),
  value('a quote in front', SYNTAX, `"Bearer" ${GOOD}`),
  value('a tab after the scheme', SYNTAX, `Bearer\t${GOOD}`),
  value('a blank and a tab', SYNTAX, `Bearer \t${GOOD}`),
  value('a tab after the token', `${FIELD}: white space around a value is not in it`, `Bearer ${GOOD}\t `, harmless()),
  value('a no-break space after the scheme', SYNTAX, `Bearer\xa0${GOOD}`),
  value('a no-break space in UTF-8', SYNTAX, `Bearer\xc2\xa0${GOOD}`),
  value('an ideographic space in UTF-8', SYNTAX, `Bearer\xe3\x80\x80${GOOD}`),
  value('a byte order mark in front', SYNTAX, `\xef\xbb\xbfBearer ${GOOD}`),
  value('bytes beyond ASCII after the token', SYNTAX, `Bearer ${GOOD}\xff\xfe`),
  value('a next-line character after the token', SYNTAX, `Bearer ${GOOD}\x85`),
  value('an encoded word', 'RFC 2047', `=?utf-8?q?Bearer?= ${GOOD}`),
  value('percent-encoded', SYNTAX, `Bearer%20${GOOD}`, MISSING),
  value('plus for a blank', SYNTAX, `Bearer+${GOOD}`, MISSING),
  value('the bare token', SYNTAX, GOOD, MISSING),
  value('100 blanks between', 'RFC 9110 section 11.4: 1*SP', `Bearer${' '.repeat(100)}${GOOD}`, harmless()),
  value('15 kB of blanks and a comma', 'CWE-1333: no expression that backtracks', `Bearer ${' '.repeat(14_900)},`),
  value('15 kB of equals signs', 'CWE-1333', `Bearer a${'='.repeat(14_900)},`),
  value('15 kB of commas', 'CWE-1333', `Basic ${', '.repeat(7_400)}`, MISSING),
];

const SCHEMES: readonly Attack[] = [
  value('bearer', 'RFC 9110 section 11.1: case-insensitive', `bearer ${GOOD}`, harmless()),
  value('BEARER', 'RFC 9110 section 11.1: case-insensitive', `BEARER ${GOOD}`, harmless()),
  ...[
    'Bearerx',
    'xBearer',
    'Bear',
    'JWT',
    'Token',
    'DPoP',
    'Basic',
    'Negotiate',
    'OAuth',
    'MAC',
    'Bearer2',
    '__proto__',
  ].map((scheme) =>
    value(`scheme ${scheme}`, 'RFC 6750 section 3: another scheme is not a bearer token', `${scheme} ${GOOD}`, MISSING),
  ),
  value('Bearer in full width', 'Unicode TR 36', `\xef\xbc\xa2earer ${GOOD}`),
  value('a long s in the scheme', 'Unicode TR 36: a letter that folds to another', `Bearer\xc5\xbf ${GOOD}`),
];

const CONTROL = `${FIELD}: CR, LF and NUL are refused`;

const CONTROLS: readonly Attack[] = [
  value('NUL in the token', CONTROL, `Bearer ${GOOD}\0`, unreadable()),
  value('NUL in front', CONTROL, `\0Bearer ${GOOD}`, unreadable()),
  value('a bare CR in the value', 'CVE-2023-30589 (Node)', `Bearer ${GOOD}\rX: y`, unreadable()),
  value('a bare LF in the value', 'CVE-2022-32214 (Node)', `Bearer\n ${GOOD}`, unreadable()),
  value('BEL', CONTROL, `Bearer ${GOOD}\x07`, unreadable()),
  value('ESC', CONTROL, `Bearer \x1b[31m${GOOD}`, unreadable()),
  value('DEL', CONTROL, `Bearer ${GOOD}\x7f`, unreadable()),
  value('continued on the next line', 'RFC 9112 section 5.2: obs-fold', `Bearer\r\n ${GOOD}`, unreadable()),
  value('continued with a tab', 'CVE-2022-32215 (Node)', `Bearer\r\n\t${GOOD}`, unreadable()),
  lines('a blank in front of the name', 'RFC 9112 section 5.2', [` Authorization: Bearer ${GOOD}`], unreadable()),
  lines('a blank after the name', 'CVE-2021-22959 (Node)', [`Authorization : Bearer ${GOOD}`], unreadable()),
  lines('a tab after the name', 'CVE-2021-22959 (Node)', [`Authorization\t: Bearer ${GOOD}`], unreadable()),
  lines('no colon', 'RFC 9112 section 5.1', [`Authorization Bearer ${GOOD}`], unreadable()),
  lines('NUL in the name', 'RFC 9110 section 5.1', [`Authorization\0: Bearer ${GOOD}`], unreadable()),
  lines('a name that ends in a dash', 'RFC 9110 section 5.1', [`Authorization-: Bearer ${GOOD}`], MISSING),
  lines('a name with an underscore', 'CGI: the same as a dash', [`HTTP_AUTHORIZATION: Bearer ${GOOD}`], MISSING),
];

const OTHER_HEADERS = Array.from({ length: 1_000 }, (_, i) => `X-${i}: ${'a'.repeat(100)}`);

const SIZES: readonly Attack[] = [
  value('17 kB', 'CVE-2018-12121 (Node)', `Bearer ${'a'.repeat(17_000)}`, unreadable(431)),
  value('100 kB', 'CVE-2018-12121 (Node)', `Bearer ${'a'.repeat(100_000)}`, unreadable(431)),
  value('15 kB of one letter', 'CWE-400', `Bearer ${'a'.repeat(15_000)}`, refused('malformed_token')),
  lines('after 100 kB of other headers', 'CVE-2018-12121 (Node)', OTHER_HEADERS, unreadable(431)),
  {
    name: 'Authorization: the second after 2,000 other headers, where Node drops the rest',
    source: 'CWE-436: a header that only a proxy in front sees',
    input: { request: `GET /v1/orders HTTP/1.1\r\nHost: api.test\r\n${manyHeaders()}\r\n` },
    expected: MALFORMED,
  },
];

function manyHeaders(): string {
  const authorization = `Authorization: Bearer ${GOOD}\r\n`;
  return authorization + 'a:b\r\n'.repeat(2_000) + authorization;
}

export const AUTHORIZATION_ATTACKS: readonly Attack[] = [
  ...REPEATED,
  ...COMMAS,
  ...SHAPES,
  ...SCHEMES,
  ...CONTROLS,
  ...SIZES,
];

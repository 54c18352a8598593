import { AUDIENCE, ISSUER, token } from '../../../support/issuer';
import { harmless, refused } from '../support/attack';
import type { Attack, Expected } from '../support/attack';

/** Spellings of a URL that a careless comparison takes for the same. */
function spellings(url: string): readonly (readonly [what: string, spelt: string])[] {
  const host = url.replace('https://', '');
  return [
    ['in upper case', url.toUpperCase()],
    ['host in another case', `https://${host.replace(/^./, (first) => first.toUpperCase())}`],
    ['with a slash', `${url}/`],
    ['with two slashes', `${url}//`],
    ['with the default port', `${url}:443`],
    ['with a path', `${url}/x/..`],
    ['with a query', `${url}?`],
    ['with a fragment', `${url}#`],
    ['with a user', `https://x@${host}`],
    ['without TLS', `http://${host}`],
    ['without a scheme', host],
    ['with a point at its end', `${url}.`],
    ['as a subdomain', `https://a.${host}`],
    ['as the beginning of a longer host', `${url}.evil.test`],
    ['as the beginning of a longer name', `${url}ing`],
    ['as the end of a longer one', `https://evil.test/${url}`],
    ['without its end', url.slice(0, -1)],
    ['with a blank in front', ` ${url}`],
    ['with a blank after', `${url} `],
    ['with a line break after', `${url}\n`],
    ['with NUL after', `${url}\u0000`],
    ['with NUL and more after', `${url}\u0000.evil.test`],
    ['with a Cyrillic letter', url.replace('t', '\u0442')],
    ['with a full-width letter', url.replace('t', '\uff54')],
    ['with a zero-width joiner', `${url.slice(0, 12)}\u200d${url.slice(12)}`],
    ['with a byte order mark', `\ufeff${url}`],
    ['in percent encoding', url.replace('test', '%74est')],
    ['with an ideographic full stop', url.replace('.', '\u3002')],
    ['empty', ''],
  ];
}

const ISSUERS: readonly Attack[] = spellings(ISSUER).map(([what, iss]) => ({
  name: `issuer ${what}`,
  source: 'RFC 8725 section 3.8, RFC 9207 section 2.4: compared as they are',
  input: { token: token({ claims: { iss } }) },
  expected: refused('wrong_issuer'),
}));

const AUDIENCES: readonly Attack[] = spellings(AUDIENCE).map(([what, aud]) => ({
  name: `audience ${what}`,
  source: 'RFC 8725 section 3.9, RFC 7519 section 4.1.3',
  input: { token: token({ claims: { aud } }) },
  expected: refused('wrong_audience'),
}));

function audience(name: string, aud: unknown, expected: Expected = refused('wrong_audience')): Attack {
  return {
    name: `audience ${name}`,
    source: 'RFC 7519 section 4.1.3',
    input: { token: token({ claims: { aud } }) },
    expected,
  };
}

const INVALID = refused('invalid_claims');

const LISTS: readonly Attack[] = [
  audience('of another API', 'https://other.test'),
  audience('list of others', ['https://other.test', `${AUDIENCE}/`]),
  audience('empty list', []),
  audience('list in a list', [[AUDIENCE]], INVALID),
  audience('list with a number next to the right one', [AUDIENCE, 1], INVALID),
  audience('list with null next to the right one', [null, AUDIENCE], INVALID),
  audience('object', { 0: AUDIENCE, length: 1 }, INVALID),
  audience('number', 1, INVALID),
  audience('null', null, INVALID),
  audience('true', true, INVALID),
  audience('missing', undefined, INVALID),
  audience('several in one text', `https://other.test ${AUDIENCE}`),
  audience('several joined with commas', `${AUDIENCE},https://other.test`),
  audience('a list as text', JSON.stringify([AUDIENCE])),
  audience('wildcard', '*'),
  audience('list that holds the right one', ['https://other.test', AUDIENCE], harmless()),
];

export const LOOKALIKE_ATTACKS: readonly Attack[] = [...ISSUERS, ...AUDIENCES, ...LISTS];

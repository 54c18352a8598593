import { AUDIENCE, GENERATION, goodClaims, ISSUER, NOW, NOW_MS, token } from '../../../support/issuer';
import { testKey } from '../../../support/keys';
import { harmless, refused } from '../support/attack';
import type { Attack, Expected } from '../support/attack';
import { signed } from '../support/forge';

const HEAD = '{"alg":"ES256","typ":"at+jwt","kid":"ES256-1"}';
const INVALID = refused('invalid_claims');

/** A claim of another value, well signed. */
function claim(name: string, what: string, value: unknown, expected: Expected, source = SOURCES[name] ?? ''): Attack {
  return { name: `${name}: ${what}`, source, input: { token: token({ claims: { [name]: value } }) }, expected };
}

/** A claim as JSON text that `JSON.stringify` would not write. */
function text(name: string, value: string, expected: Expected, source = SOURCES[name] ?? ''): Attack {
  const claims = JSON.stringify({ ...goodClaims(), [name]: '@' }).replace('"@"', value);
  return { name: `${name}: ${value.slice(0, 40)}`, source, input: { token: signed(HEAD, claims) }, expected };
}

const SOURCES: Readonly<Record<string, string>> = {
  iss: 'RFC 7519 section 4.1.1',
  sub: 'RFC 7519 section 4.1.2',
  aud: 'RFC 7519 section 4.1.3',
  exp: 'RFC 7519 section 4.1.4',
  nbf: 'RFC 7519 section 4.1.5',
  iat: 'RFC 7519 section 4.1.6',
  jti: 'RFC 7519 section 4.1.7',
  client_id: 'RFC 9068 section 2.2',
  scope: 'RFC 6749 section 3.3',
  generation: 'Generation of the client credential: an integer from 0 to 2^53 - 1',
};

const NO_TEXTS: readonly (readonly [what: string, value: unknown])[] = [
  ['null', null],
  ['true', true],
  ['a number', 17],
  ['an empty list', []],
  ['a list of the right one', ['pos-17']],
  ['an object', { toString: 'pos-17' }],
];

const TEXTS: readonly Attack[] = [
  ...['iss', 'sub', 'jti', 'client_id'].flatMap((name) => [
    ...NO_TEXTS.map(([what, value]) => claim(name, what, value, INVALID)),
    claim(name, 'missing', undefined, INVALID),
  ]),
  claim('iss', 'a list of the right one, alone', [ISSUER], INVALID),
  claim('client_id', 'empty', '', INVALID),
];

const NO_NUMBERS: readonly (readonly [what: string, value: unknown])[] = [
  ['null', null],
  ['true', true],
  ['text of a number', String(NOW + 60)],
  ['a date', '2027-01-15T08:00:00Z'],
  ['a list of a number', [NOW + 60]],
  ['an object', { valueOf: NOW + 60 }],
];

const EXPIRED = refused('expired');
const TOO_EARLY = refused('not_yet_valid');
const TOO_LONG = refused('lifetime_too_long');

const TIMES: readonly Attack[] = [
  ...['exp', 'nbf', 'iat'].flatMap((name) => NO_NUMBERS.map(([what, value]) => claim(name, what, value, INVALID))),
  claim('exp', 'missing', undefined, INVALID),
  claim('iat', 'missing', undefined, INVALID),
  ...['exp', 'nbf', 'iat'].flatMap((name) => [
    text(name, '1e400', INVALID, 'IEEE 754: JSON.parse reads it as Infinity'),
    text(name, '-1e400', INVALID, 'IEEE 754: JSON.parse reads it as -Infinity'),
  ]),
  text('exp', '-0', EXPIRED),
  text('exp', '0', EXPIRED),
  text('exp', '-1', EXPIRED),
  text('exp', '1e308', TOO_LONG, 'IEEE 754: Infinity in ms'),
  text('exp', '9007199254740993', TOO_LONG, 'IEEE 754: above 2^53'),
  text('exp', '1e-400', EXPIRED),
  text('exp', `1${'0'.repeat(300)}`, TOO_LONG),
  text('nbf', '1e308', TOO_EARLY),
  text('nbf', '-1e308', harmless()),
  text('iat', '1e308', TOO_EARLY),
  text('iat', '-1e308', TOO_LONG, 'an age without end'),
  text('iat', '0', TOO_LONG),
  claim('exp', 'exactly now and the tolerance', NOW - 10, EXPIRED),
  claim('exp', 'the time in ms', NOW_MS + 60_000, TOO_LONG),
  claim('exp', 'a day and a second after iat', NOW - 60 + 86_401, TOO_LONG),
  claim('iat', 'beyond the tolerance', NOW + 11, TOO_EARLY),
  claim('nbf', 'beyond the tolerance', NOW + 11, TOO_EARLY),
  claim('iat', 'the time in ms', NOW_MS, TOO_EARLY),
];

const DENIED = refused('insufficient_scope', { scopes: ['orders:read'] });

const SCOPES: readonly Attack[] = [
  ...NO_TEXTS.filter(([what]) => what !== 'a list of the right one').map(([what, value]) =>
    claim('scope', what, value, DENIED),
  ),
  claim('scope', 'missing', undefined, DENIED),
  claim('scope', 'a wildcard', '* orders:* **', DENIED),
  claim('scope', 'a longer name', 'orders:readonly xorders:read', DENIED),
  claim('scope', 'joined with commas', 'orders:read,orders:write', DENIED),
  claim('scope', 'parted by a tab', 'items:read\torders:read', DENIED),
  claim('scope', 'parted by a no-break space', 'items:read\u00a0orders:read', DENIED),
  claim('scope', 'in upper case', 'ORDERS:READ', DENIED),
  claim('scope', 'with a zero-width space', 'orders:read\u200b', DENIED),
  claim('scope', 'a list in a list', [['orders:read']], DENIED),
  claim('scope', 'a list with an object in it', ['orders:read', {}], DENIED),
  claim('scope', 'one text of two in a list', ['items:read orders:read'], DENIED),
  claim('scp', 'in place of scope', 'orders:read', harmless(), 'RFC 9068 section 2.2.3: scope counts'),
  claim('scope', '__proto__', '__proto__ constructor', DENIED, 'CWE-1321'),
];

const MISSING = refused('generation_missing');
const NO_GENERATION = refused('generation_invalid');

const GENERATIONS: readonly Attack[] = [
  claim('generation', 'missing', undefined, MISSING),
  claim('generation', 'null', null, MISSING),
  claim('generation', 'text', String(GENERATION), NO_GENERATION),
  claim('generation', 'a fraction', GENERATION + 0.5, NO_GENERATION),
  claim('generation', 'negative', -1, NO_GENERATION),
  claim('generation', '2^53', 2 ** 53, NO_GENERATION),
  claim('generation', 'a list', [GENERATION], NO_GENERATION),
  claim('generation', 'an object', { valueOf: GENERATION }, NO_GENERATION),
  claim('generation', 'a time ahead of the clock', NOW_MS + 10_001, NO_GENERATION),
  text('generation', '1e400', NO_GENERATION),
];

/** Claims as raw JSON, in place of all others where `instead` says so. */
function raw(name: string, source: string, json: string, expected: Expected): Attack {
  return { name, source, input: { token: signed(HEAD, json) }, expected };
}

const OPEN = JSON.stringify(goodClaims()).slice(0, -1);
const INHERITED = JSON.stringify({ ...goodClaims(), iss: undefined, client_id: undefined }).slice(0, -1);

const MISSING_CLAIMS = `{"iss":"${ISSUER}","client_id":"a"}`;
const POLLUTING = '{"prototype":{"polluted":true}}';
const IN_UPPER_CASE = `{"ISS":"${ISSUER}","AUD":"${AUDIENCE}","EXP":${NOW + 60}}`;

const PROTOTYPES: readonly Attack[] = [
  raw('__proto__ with claims that are missing', 'CWE-1321', `${INHERITED},"__proto__":${MISSING_CLAIMS}}`, INVALID),
  raw('__proto__ that would pollute', 'CWE-1321', `${OPEN},"__proto__":{"polluted":true}}`, harmless()),
  raw('constructor.prototype that would pollute', 'CWE-1321', `${OPEN},"constructor":${POLLUTING}}`, harmless()),
  raw('toString and hasOwnProperty', 'CWE-1321', `${OPEN},"toString":1,"hasOwnProperty":2,"valueOf":null}`, harmless()),
  raw('toJSON as a claim', 'CWE-1321', `${OPEN},"toJSON":"x","then":{}}`, harmless()),
  claim('client_id', '__proto__', '__proto__', harmless(), 'CWE-1321'),
  claim('client_id', 'constructor', 'constructor', harmless(), 'CWE-1321'),
  raw('claims in another case', 'RFC 7519 section 4: case-sensitive', IN_UPPER_CASE, INVALID),
];

const BOUND = refused('sender_constrained');

const CERTIFICATE = 'bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2';

/** A token bound to a key is refused, because possession of the key is not proved. */
const CONFIRMATIONS: readonly Attack[] = [
  claim('cnf', 'a DPoP key', { jkt: '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I' }, BOUND, 'RFC 9449 section 7.1'),
  claim('cnf', 'a client certificate', { 'x5t#S256': CERTIFICATE }, BOUND, 'RFC 8705'),
  claim('cnf', 'a key', { jwk: testKey().jwk }, BOUND, 'RFC 7800 section 3.2'),
  claim('cnf', 'an unknown method', { x: 1 }, BOUND, 'RFC 7800 section 3.1'),
  claim('cnf', 'an empty object', {}, BOUND, 'RFC 7800 section 3.1'),
  ...NO_TEXTS.filter(([what]) => what !== 'an object').map(([what, value]) =>
    claim('cnf', what, value, INVALID, 'RFC 7800 section 3.1: a JSON object'),
  ),
];

export const CLAIM_ATTACKS: readonly Attack[] = [
  ...TEXTS,
  ...TIMES,
  ...SCOPES,
  ...GENERATIONS,
  ...PROTOTYPES,
  ...CONFIRMATIONS,
];

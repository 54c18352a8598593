import { randomBytes } from 'node:crypto';
import { token } from '../../../support/issuer';
import type { Members, TokenParts } from '../../../support/issuer';
import { refused, harmless } from '../support/attack';
import type { Attack, Expected } from '../support/attack';
import { der, ED, ES, forged, pem, RS, STRANGER, STRANGER_RSA, TWIN } from '../support/forge';

const JWKS_URL = 'http://127.0.0.1:9/jwks';

/** Signed by the attacker's key, with a header that points to that key. */
function led(name: string, source: string, header: Members, expected: Expected = refused('bad_signature')): Attack {
  return { name, source, input: { token: forged({ header }) }, expected };
}

const UNKNOWN = refused('unknown_key');

/** A token that the issuer has signed. */
function row(name: string, source: string, parts: TokenParts, expected: Expected): Attack {
  return { name, source, input: { token: token(parts) }, expected };
}

const BROUGHT = { jwk: STRANGER.jwk, jku: JWKS_URL, x5u: JWKS_URL };

const EMBEDDED: readonly Attack[] = [
  led('embedded jwk of the attacker', 'CVE-2018-0114 (node-jose)', { jwk: STRANGER.jwk }),
  led('embedded jwk, no kid', 'CVE-2026-27962 (Authlib)', { jwk: STRANGER.jwk, kid: undefined }),
  led('embedded jwk, unknown kid', 'RFC 8725 section 3.10', { jwk: STRANGER.jwk, kid: 'mine' }, UNKNOWN),
  led('embedded private jwk', 'RFC 7515 section 4.1.3', { jwk: STRANGER.privateKey.export({ format: 'jwk' }) }),
  led('embedded jwk that is a symmetric key', 'RFC 8725 section 3.10', { jwk: { kty: 'oct', k: 'AAAA' } }),
  led('embedded jwk that is text', 'RFC 7515 section 4.1.3', { jwk: pem(STRANGER) }),
  led('embedded key set', 'RFC 8725 section 3.10', { jwks: { keys: [STRANGER.jwk] }, keys: [STRANGER.jwk] }),
  led('jku of the attacker', 'RFC 7515 section 4.1.2, RFC 8725 section 3.10', { jku: JWKS_URL }),
  led('jku with an unknown kid', 'RFC 8725 section 3.10', { jku: JWKS_URL, kid: 'mine' }, UNKNOWN),
  led('jku that looks like the issuer', 'RFC 8725 section 3.10', { jku: `https://login.test@127.0.0.1:9/jwks` }),
  led('jku that is a file', 'RFC 8725 section 3.10', { jku: 'file:///etc/passwd' }),
  led('jku of cloud metadata', 'CWE-918', { jku: 'http://169.254.169.254/latest/meta-data/' }),
  led('jku as data', 'RFC 8725 section 3.10', {
    jku: `data:application/json,${JSON.stringify({ keys: [STRANGER.jwk] })}`,
  }),
  led('x5u of the attacker', 'RFC 7515 section 4.1.5', { x5u: JWKS_URL }),
  led('x5c of the attacker', 'RFC 7515 section 4.1.6', { x5c: [der(STRANGER).toString('base64')] }),
  led('x5c with rubbish', 'RFC 7515 section 4.1.6', { x5c: ['-----BEGIN CERTIFICATE-----', null, {}] }),
  led('x5t and x5t#S256', 'RFC 7515 section 4.1.7', { x5t: 'AAAA', 'x5t#S256': 'AAAA', kid: undefined }),
  led('cnf with the key', 'RFC 7800 section 3.2', { cnf: { jwk: STRANGER.jwk } }),
  row('a good token that also brings a jwk and a jku', 'RFC 8725 section 3.10', { header: BROUGHT }, harmless()),
];

const NOT_ALLOWED = refused('algorithm_not_allowed');
const NO_KID = { header: { kid: undefined } };
const FOR_ANOTHER = { header: { kid: 'mine' }, claims: { aud: 'https://elsewhere.test' } };
const KIDS_OF = 'RFC 8725 section 3.10';
const DISTINCT = 'RFC 7517 section 4.5: keys should have distinct kids';
const NOT_ASKED = 'CWE-405: the issuer must not be asked';
const NOT_IN_TURN = 'RFC 8725 section 3.1: trying keys in turn makes each good for every token';

const FORGED_KEYS: readonly Attack[] = [
  led('another key under a known kid', 'RFC 7515 section 5.2', {}),
  row('another RSA key under a known kid', 'RFC 7515 section 5.2', { key: STRANGER_RSA }, refused('bad_signature')),
  row('a good signature under the kid of another key', KIDS_OF, { header: { kid: ED.kid } }, NOT_ALLOWED),
  row('the kid of two published keys: neither is tried', DISTINCT, { key: TWIN }, refused('unusable_key')),
  row('an unknown kid in a token that no key can make right', NOT_ASKED, FOR_ANOTHER, refused('wrong_audience')),
  row('no kid where only one key is for the algorithm', 'RFC 7515 section 4.1.4', NO_KID, harmless()),
  row('no kid where several keys are for it: none is tried', NOT_IN_TURN, { ...NO_KID, key: RS }, UNKNOWN),
];

/** A token whose signature is right, so that the kid alone decides. */
function kid(name: string, source: string, value: unknown, expected: Expected = UNKNOWN): Attack {
  return { name: `kid: ${name}`, source, input: { token: token({ header: { kid: value } }) }, expected };
}

const MALFORMED = refused('malformed_token');

const KIDS: readonly Attack[] = [
  kid('a path to a file of known content', 'RFC 8725 section 3.10', '../../../../../../dev/null'),
  kid('an absolute path', 'RFC 8725 section 2.10', '/proc/sys/kernel/randomize_va_space'),
  kid('a path to the very key', 'RFC 8725 section 3.10', `./${ES.kid}`),
  kid('SQL', 'RFC 8725 section 3.10: SQL injection', `x' UNION SELECT 'secret';--`),
  kid('LDAP', 'RFC 8725 section 3.10: LDAP injection', '*)(uid=*))(|(uid=*'),
  kid('a shell command', 'CVE-2017-17405 (Ruby): "|" opens a process', '|/bin/id'),
  kid('a JNDI URL', 'CVE-2021-44228 (Log4Shell)', '${jndi:ldap://127.0.0.1:9/a}'),
  kid('a template', 'CWE-1336', '{{constructor.constructor("return process")()}}'),
  kid('__proto__', 'CWE-1321', '__proto__'),
  kid('constructor', 'CWE-1321', 'constructor'),
  kid('toString', 'CWE-1321', 'toString'),
  kid('CR LF and a header', 'CWE-113; jwks-rsa puts it into an error text', 'x\r\nSet-Cookie: a=b'),
  kid('LF and a line of the log', 'CWE-117', 'x\n{"level":"info","msg":"request"}'),
  kid('NUL', 'CWE-158', `${ES.kid}\u0000`),
  kid('a quote and a backslash', 'RFC 9110 section 5.6.4', 'x", error="none\\'),
  kid('emoji', 'RFC 9110 section 5.5', '🔑'),
  kid('half of a surrogate pair', 'RFC 8259 section 8.2', '\ud83d'),
  kid('a line separator', 'CWE-117', 'x\u2028y\u0085z'),
  kid('an escape sequence of terminals', 'CWE-150', '\u001b[2J\u009b2J'),
  kid('a right-to-left override', 'CVE-2021-42574 (Trojan Source)', '\u202e1-652SE'),
  kid('the known one in another case', 'RFC 7515 section 4.1.4: case-sensitive', ES.kid.toLowerCase()),
  kid('the known one with a blank', 'RFC 7515 section 4.1.4', `${ES.kid} `),
  kid('the known one in full width', 'Unicode TR 36', 'ＥＳ256-1'),
  kid('the empty text', 'RFC 7515 section 4.1.4', ''),
  kid('10 kB', 'CVE-2025-61920 (Authlib): segments without a bound', 'k'.repeat(10_000), MALFORMED),
  kid('1 kB of random text', 'CWE-400', randomBytes(512).toString('hex')),
  kid('a number', 'RFC 7515 section 4.1.4', 1, MALFORMED),
  kid('null', 'RFC 7515 section 4.1.4', null, MALFORMED),
  kid('true', 'RFC 7515 section 4.1.4', true, MALFORMED),
  kid('an object', 'RFC 7515 section 4.1.4', { toString: ES.kid }, MALFORMED),
  kid('an array of the known one', 'RFC 7515 section 4.1.4', [ES.kid], MALFORMED),
];

export const KEY_ATTACKS: readonly Attack[] = [...EMBEDDED, ...FORGED_KEYS, ...KIDS];

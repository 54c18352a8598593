import { base64url, goodClaims, token } from '../../../support/issuer';
import type { Members } from '../../../support/issuer';
import { refused } from '../support/attack';
import type { Attack, Expected } from '../support/attack';
import { ES, GOOD, RS, withParts } from '../support/forge';

const MALFORMED = refused('malformed_token');
const NOT_ALLOWED = refused('algorithm_not_allowed');
const CRITICAL = refused('unsupported_critical_header');
const [HEADER = '', PAYLOAD = '', SIGNATURE = ''] = GOOD.split('.');

/** A well-signed token with other header members. */
function header(name: string, source: string, members: Members, expected: Expected): Attack {
  return { name, source, input: { token: token({ header: members }) }, expected };
}

function raw(name: string, source: string, text: string, expected: Expected): Attack {
  return { name, source, input: { token: text }, expected };
}

const UNENCODED = withParts({ header: base64url('{"alg":"ES256","b64":false,"crit":["b64"]}'), payload: 'plain' });

const SECTION = 'RFC 7515 section 4.1.11';
const CRIT: readonly Attack[] = [
  header('crit: an unknown extension', 'CVE-2025-59420 (Authlib)', { crit: ['bork'], bork: true }, CRITICAL),
  header('crit: an extension that is not there', SECTION, { crit: ['bork'] }, CRITICAL),
  header('crit: an empty list', SECTION, { crit: [] }, CRITICAL),
  header('crit: a name twice', SECTION, { crit: ['bork', 'bork'], bork: 1 }, CRITICAL),
  header('crit: a name of the standard', SECTION, { crit: ['alg'] }, CRITICAL),
  header('crit: crit', SECTION, { crit: ['crit'] }, CRITICAL),
  header('crit: null', SECTION, { crit: null }, CRITICAL),
  header('crit: text', SECTION, { crit: 'exp', exp: 1 }, CRITICAL),
  header('crit: an object', SECTION, { crit: { 0: 'exp', length: 1 } }, CRITICAL),
  header('crit: a list of lists', SECTION, { crit: [['b64']] }, CRITICAL),
  header('crit: exp', SECTION, { crit: ['exp'], exp: 1 }, CRITICAL),
  header('crit: __proto__', 'CWE-1321', { crit: ['__proto__'] }, CRITICAL),
  header('crit: a thousand names', 'CWE-400', { crit: Array.from({ length: 1_000 }, (_, i) => `x${i}`) }, CRITICAL),
  header('b64: false, named in crit', 'RFC 7797 section 6', { b64: false, crit: ['b64'] }, CRITICAL),
  header('b64: false, not named in crit', 'RFC 7797 section 6', { b64: false }, CRITICAL),
  header('b64: true', 'RFC 7797 section 3', { b64: true, crit: ['b64'] }, CRITICAL),
  header('b64: text', 'RFC 7797 section 3', { b64: 'false' }, CRITICAL),
  raw('b64: false, with a payload that is not encoded', 'RFC 7797 section 5.2', UNENCODED, MALFORMED),
];

const JWE = base64url(JSON.stringify({ alg: 'RSA-OAEP-256', enc: 'A256GCM', kid: RS.kid }));

const DIRECT = base64url('{"alg":"dir","enc":"A256GCM"}');
const COMPRESSED = base64url('{"alg":"dir","enc":"A128GCM","zip":"DEF"}');
const PBES2 = 'PBES2-HS256+A128KW';
const JWE_SOURCE = 'RFC 7516 section 3.1';

const ENCRYPTED: readonly Attack[] = [
  raw('JWE: five parts', JWE_SOURCE, `${JWE}.AAAA.AAAA.AAAA.AAAA`, MALFORMED),
  raw('JWE: five parts, alg dir', JWE_SOURCE, `${DIRECT}..AAAA.AAAA.AAAA`, MALFORMED),
  raw('JWE: three parts, taken for JWS', 'CVE-2023-51774 (json-jwt)', `${JWE}.${PAYLOAD}.${SIGNATURE}`, NOT_ALLOWED),
  raw('JWE: compressed to a bomb', 'CVE-2024-28176 (jose)', `${COMPRESSED}.AA.AA.AA.AA`, MALFORMED),
  header('JWE: enc in the header of a signed token', JWE_SOURCE, { alg: 'dir', enc: 'A256GCM' }, NOT_ALLOWED),
  header('JWE: PBES2 with an endless count', 'CVE-2022-36083 (jose)', { alg: PBES2, p2c: 2 ** 31 }, NOT_ALLOWED),
];

const NESTING = 'RFC 7519 section 5.2';
const nesting = (payload: string): string => token({ header: { cty: 'JWT' }, payload });

const NESTED: readonly Attack[] = [
  raw('nested: a good token as the payload of another', NESTING, nesting(GOOD), MALFORMED),
  raw('nested: a good token in a string as the payload', NESTING, nesting(JSON.stringify(GOOD)), MALFORMED),
  raw('nested: a good token in the header', 'RFC 7515 section 3.1', withParts({ header: base64url(GOOD) }), MALFORMED),
];

const FLATTENED = JSON.stringify({ protected: HEADER, payload: PAYLOAD, signature: SIGNATURE });

const GENERAL = JSON.stringify({ payload: PAYLOAD, signatures: [{ protected: HEADER, signature: SIGNATURE }, {}] });
/** Read as JSON it has the right parts, and read as the compact form too. */
const BOTH_FORMS = `{"${HEADER}.":"",${FLATTENED.slice(1)}`;

const SERIALISATIONS: readonly Attack[] = [
  raw('JSON serialisation, flattened', 'RFC 7515 section 7.2.2', FLATTENED, refused('malformed_authorization')),
  raw('JSON serialisation, flattened, in base64url', 'RFC 7515 section 7.2.2', base64url(FLATTENED), MALFORMED),
  raw('JSON and compact in one', 'CVE-2022-39227 (python-jwt)', BOTH_FORMS, refused('malformed_authorization')),
  raw('JSON serialisation, general', 'RFC 7515 section 7.2.1', GENERAL, refused('malformed_authorization')),
];

const WRONG_TYPE = refused('wrong_type');

const TYPES: readonly Attack[] = [
  header('typ: JWT, as ID tokens have it', 'RFC 9068 section 2.1, RFC 8725 section 3.11', { typ: 'JWT' }, WRONG_TYPE),
  header('typ: missing', 'RFC 9068 section 4', { typ: undefined }, WRONG_TYPE),
  header('typ: a logout token', 'OpenID Back-Channel Logout 1.0 section 2.4', { typ: 'logout+jwt' }, WRONG_TYPE),
  header('typ: a security event', 'RFC 8417 section 2.3', { typ: 'secevent+jwt' }, WRONG_TYPE),
  header('typ: a DPoP proof', 'RFC 9449 section 4.2', { typ: 'dpop+jwt', jwk: ES.jwk }, WRONG_TYPE),
  header('typ: the right one in a longer one', 'RFC 9068 section 4', { typ: 'at+jwt;x=1' }, WRONG_TYPE),
  header('typ: the prefix twice', 'RFC 7515 section 4.1.9', { typ: 'application/application/at+jwt' }, WRONG_TYPE),
  header('typ: with a blank', 'RFC 9068 section 4', { typ: 'at+jwt ' }, WRONG_TYPE),
  header('typ: a Kelvin sign that lower-cases to k', 'Unicode TR 36', { typ: 'application/\u212a' }, WRONG_TYPE),
  header('typ: a number', 'RFC 7515 section 4.1.9', { typ: 1 }, MALFORMED),
  header('typ: a list', 'RFC 7515 section 4.1.9', { typ: ['at+jwt'] }, MALFORMED),
  header('typ: null', 'RFC 7515 section 4.1.9', { typ: null }, MALFORMED),
];

/** A token for another API whose header has the claims of a good one. */
const REPLICATED = token({ header: goodClaims(), claims: { aud: 'https://other.test' } });

export const HEADER_ATTACKS: readonly Attack[] = [
  ...CRIT,
  ...ENCRYPTED,
  ...NESTED,
  ...SERIALISATIONS,
  ...TYPES,
  raw('claims in the header are not claims', 'RFC 7519 section 5.3', REPLICATED, refused('wrong_audience')),
];

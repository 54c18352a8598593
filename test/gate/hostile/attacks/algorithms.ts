import { createHmac } from 'node:crypto';
import { base64url, goodClaims, signer, token } from '../../../support/issuer';
import type { TestKey } from '../../../support/keys';
import { refused } from '../support/attack';
import type { Attack, Expected } from '../support/attack';
import { ANY_RSA, der, ED, ES, ES384, pem, PS, RS, signed, withParts } from '../support/forge';

const CLAIMS = JSON.stringify(goodClaims());
const NOT_ALLOWED = refused('algorithm_not_allowed');
const MALFORMED = refused('malformed_token');

function row(name: string, source: string, jwt: string, expected: Expected): Attack {
  return { name, source, input: { token: jwt }, expected };
}

/** HMAC over a token that names a published key, with some spelling of that key as the secret. */
function hmac(secret: string | Buffer, key: TestKey = RS, alg = 'HS256'): string {
  const hash = `sha${alg.slice(2)}`;
  return token({ key, header: { alg }, sign: (input) => createHmac(hash, secret).update(input).digest() });
}

const withoutEnd = (text: string): string => text.replace(/\n+$/, '');

const CONFUSION: readonly Attack[] = (
  [
    ['the PEM of the key', 'CVE-2015-9235 (jsonwebtoken)', hmac(pem(RS))],
    ['the PEM without its last line break', 'CVE-2016-10555 (jwt-simple)', hmac(withoutEnd(pem(RS)))],
    ['the PEM with two line breaks after it', 'CVE-2016-5431 (jose-php)', hmac(`${pem(RS)}\n`)],
    ['the PEM with CR LF', 'RFC 8725 section 2.1', hmac(pem(RS).replace(/\n/g, '\r\n'))],
    ['the PEM after a blank', 'CVE-2026-34950 (fast-jwt)', hmac(` ${pem(RS)}`)],
    ['the PKCS#1 PEM', 'CVE-2017-11424 (PyJWT), CVE-2023-48223 (fast-jwt)', hmac(pem(RS, 'pkcs1'))],
    ['the DER', 'RFC 8725 section 3.1', hmac(der(RS))],
    ['the base64 of the DER', 'RFC 8725 section 3.1', hmac(der(RS).toString('base64'))],
    ['the JWK as JSON', 'RFC 8725 section 3.1', hmac(JSON.stringify(RS.jwk))],
    ['the modulus', 'RFC 8725 section 3.1', hmac(Buffer.from(String(RS.jwk['n']), 'base64url'))],
    ['a key published without alg', 'CVE-2026-22818 (Hono)', hmac(pem(ANY_RSA), ANY_RSA)],
    ['the PEM of an EC key', 'CVE-2024-33663 (python-jose)', hmac(pem(ES), ES)],
    ['the DER of an Ed25519 key', 'CVE-2022-29217 (PyJWT)', hmac(der(ED), ED)],
    ['the PEM, HS384', 'RFC 7518 section 3.2', hmac(pem(RS), RS, 'HS384')],
    ['the PEM, HS512', 'RFC 7518 section 3.2', hmac(pem(RS), RS, 'HS512')],
    ['an empty secret', 'CVE-2019-20933 (InfluxDB)', hmac('')],
    ['a secret from a word list', 'RFC 8725 section 2.2', hmac('secret')],
    ['the kid itself', 'RFC 8725 section 2.10', hmac(RS.kid)],
  ] as const
).map(([name, source, forged]) => row(`HMAC: the secret is ${name}`, source, forged, NOT_ALLOWED));

const PAYLOAD = base64url(CLAIMS);
const NO_ALGORITHM = base64url('{"alg":"none","typ":"at+jwt"}');
const ESCAPED = String.raw`{"alg":"\u006e\u006f\u006e\u0065","typ":"at+jwt","kid":"ES256-1"}`;
const MCLEAN = 'McLean 2015, "Critical vulnerabilities in JSON Web Token libraries"';

const NONE: readonly Attack[] = [
  ...[
    'none',
    'None',
    'NONE',
    'nOnE',
    'none ',
    ' none',
    'none\u0000',
    'n\u043ene',
    'none\n',
    '',
    'null',
    'HS256,none',
  ].map((alg) =>
    row(
      `none: alg is ${JSON.stringify(alg)} and the signature is left`,
      alg === 'none' ? MCLEAN : 'Auth0 Authentication API 2020: "nonE" passed a filter for "none"',
      withParts({ header: base64url(JSON.stringify({ typ: 'at+jwt', alg, kid: ES.kid })) }),
      NOT_ALLOWED,
    ),
  ),
  row('none: with an empty signature', 'CVE-2020-28042 (ServiceStack)', `${NO_ALGORITHM}.${PAYLOAD}.`, MALFORMED),
  row('none: without the last point', 'CVE-2018-1000531 (prime-jwt)', `${NO_ALGORITHM}.${PAYLOAD}`, MALFORMED),
  row('none: spelt with escapes', 'RFC 8259 section 8.3', signed(ESCAPED, CLAIMS), NOT_ALLOWED),
  ...(
    [
      ['missing', undefined],
      ['null', null],
      ['false', false],
      ['0', 0],
      ['a list of names', ['ES256', 'none']],
      ['an object', { name: 'ES256' }],
    ] as const
  ).map(([what, alg]) => row(`none: alg is ${what}`, 'RFC 7515 section 4.1.1', token({ header: { alg } }), MALFORMED)),
];

/** Right key, right signature for another algorithm than the key or the header is for. */
function signedAs(alg: string, by: string, key: TestKey): string {
  return token({ key, header: { alg }, sign: signer(by, key.privateKey) });
}

const MISMATCHED = 'RFC 7515 section 10.7, RFC 8725 section 3.1';
const ANOTHER = base64url('{"alg":"EdDSA","typ":"at+jwt","kid":"ES256-1"}');

const MISMATCH: readonly Attack[] = (
  [
    ['a PS256 token for an RS256 key', signedAs('PS256', 'PS256', RS), NOT_ALLOWED],
    ['an RS256 token for a PS256 key', signedAs('RS256', 'RS256', PS), NOT_ALLOWED],
    ['RS256 in the header, PSS in the signature', signedAs('RS256', 'PS256', RS), refused('bad_signature')],
    ['PS256 in the header, PKCS#1 in the signature', signedAs('PS256', 'RS256', PS), refused('bad_signature')],
    ['RS512 for a key published for RS256', signedAs('RS512', 'RS512', RS), NOT_ALLOWED],
    ['RS384 in the header, SHA-256 in the signature', signedAs('RS384', 'RS256', ANY_RSA), refused('bad_signature')],
    ['ES256 in the header of a P-384 key', signedAs('ES256', 'ES256', ES384), NOT_ALLOWED],
    ['ES384 in the header of a P-256 key', signedAs('ES384', 'ES384', ES), NOT_ALLOWED],
    ['ES512 in the header of a P-256 key', signedAs('ES512', 'ES512', ES), NOT_ALLOWED],
    ['ES256K', token({ header: { alg: 'ES256K' } }), NOT_ALLOWED],
    ['ES256 in the header of an Ed25519 key', signedAs('ES256', 'EdDSA', ED), NOT_ALLOWED],
    ['EdDSA in the header of an EC key', signedAs('EdDSA', 'ES256', ES), NOT_ALLOWED],
    ['RS256 in the header of an EC key', signedAs('RS256', 'ES256', ES), NOT_ALLOWED],
    ['RS1 (SHA-1)', signedAs('RS1', 'RS256', RS), NOT_ALLOWED],
    ['an encryption algorithm', token({ key: RS, header: { alg: 'RSA-OAEP-256' } }), NOT_ALLOWED],
    ['alg in lower case', token({ header: { alg: 'es256' } }), NOT_ALLOWED],
    ['alg that names a member of every object', token({ header: { alg: 'constructor' } }), NOT_ALLOWED],
    ['alg "__proto__"', token({ header: { alg: '__proto__' } }), NOT_ALLOWED],
    ['another alg after a good signature', withParts({ header: ANOTHER }), NOT_ALLOWED],
  ] as const
).map(([what, forged, expected]) => row(`algorithm: ${what}`, MISMATCHED, forged, expected));

export const ALGORITHM_ATTACKS: readonly Attack[] = [...CONFUSION, ...NONE, ...MISMATCH];

import { base64url, goodClaims } from '../../../support/issuer';
import { harmless, refused } from '../support/attack';
import type { Attack, Expected } from '../support/attack';
import { GOOD, notCanonical, signed, signParts, withParts } from '../support/forge';

const MALFORMED = refused('malformed_token');
const [HEADER = '', PAYLOAD = '', SIGNATURE = ''] = GOOD.split('.');
const HEAD = '{"alg":"ES256","typ":"at+jwt","kid":"ES256-1"}';
const CLAIMS = JSON.stringify(goodClaims());
/** The claims without their last bracket. */
const OPEN = CLAIMS.slice(0, -1);

function raw(name: string, source: string, token: string, expected: Expected = MALFORMED): Attack {
  return { name, source, input: { token }, expected };
}

const UNIQUE = 'RFC 7515 section 4, RFC 7519 section 4: names must be unique';

const SAME_NAMES = 'RFC 8259 section 8.3';

const DUPLICATES: readonly Attack[] = [
  raw('duplicate alg', UNIQUE, signed('{"alg":"none","alg":"ES256","typ":"at+jwt","kid":"ES256-1"}', CLAIMS)),
  raw('duplicate alg, escaped', UNIQUE, signed(String.raw`{"\u0061lg":"none",${HEAD.slice(1)}`, CLAIMS)),
  raw('duplicate kid', UNIQUE, signed('{"kid":"other","alg":"ES256","typ":"at+jwt","kid":"ES256-1"}', CLAIMS)),
  raw('duplicate typ', UNIQUE, signed('{"typ":"JWT","alg":"ES256","typ":"at+jwt","kid":"ES256-1"}', CLAIMS)),
  raw('duplicate member deep in the header', UNIQUE, signed(`${HEAD.slice(0, -1)},"x":{"a":1,"a":2}}`, CLAIMS)),
  raw('duplicate iss', UNIQUE, signed(HEAD, `${OPEN},"iss":"https://login.test"}`)),
  raw('duplicate exp', UNIQUE, signed(HEAD, `${OPEN},"exp":9999999999}`)),
  raw('duplicate scope, escaped', UNIQUE, signed(HEAD, String.raw`${OPEN},"\u0073cope":"orders:write"}`)),
  raw('duplicate client_id, escaped in upper case', UNIQUE, signed(HEAD, String.raw`${OPEN},"client\u005Fid":"root"}`)),
  raw('duplicate __proto__', 'CWE-1321', signed(HEAD, `${OPEN},"__proto__":{},"__proto__":{}}`)),
  raw('duplicate empty names', UNIQUE, signed(HEAD, `${OPEN},"":1,"":2}`)),
  raw('names that look alike are not duplicates', SAME_NAMES, signed(HEAD, `${OPEN},"\u0435xp":1}`), harmless()),
];

const NESTED = '['.repeat(5_000) + ']'.repeat(5_000);
const MEMBERS = Array.from({ length: 1_000 }, (_, i) => `"a${i}":1`).join();
const STRICT = 'RFC 8259 section 2';

const JSON_TEXTS: readonly Attack[] = [
  raw('payload null', 'RFC 7519 section 7.2', signed(HEAD, 'null')),
  raw('payload an array of claims', 'RFC 7519 section 7.2', signed(HEAD, `[${CLAIMS}]`)),
  raw('payload a string', 'RFC 7519 section 7.2', signed(HEAD, JSON.stringify(CLAIMS))),
  raw('payload a number', 'RFC 7519 section 7.2', signed(HEAD, '1')),
  raw('payload empty braces', 'RFC 7519 section 4.1', signed(HEAD, '{}'), refused('invalid_claims')),
  raw('header empty braces', 'RFC 7515 section 4.1.1', signed('{}', CLAIMS)),
  raw('byte order mark', 'RFC 8259 section 8.1', signed(HEAD, `\ufeff${CLAIMS}`)),
  raw('invalid UTF-8 in the payload', 'RFC 7519 section 7.2', withBytes(`${OPEN},"x":"\xff"}`)),
  raw('overlong UTF-8 in the payload', 'RFC 3629 section 10', withBytes(`${OPEN},"x":"\xc0\xaf"}`)),
  raw('UTF-16 payload', 'RFC 8259 section 8.1', withPayload(Buffer.from(CLAIMS, 'utf16le'))),
  raw('comment in the header', STRICT, signed('{/**/"alg":"ES256","typ":"at+jwt","kid":"ES256-1"}', CLAIMS)),
  raw('trailing comma', STRICT, signed(HEAD, `${OPEN},}`)),
  raw('single quotes', STRICT, signed(HEAD.replaceAll('"', "'"), CLAIMS)),
  raw('two documents', STRICT, signed(HEAD, `${CLAIMS}{}`)),
  raw('NUL after the document', STRICT, signed(HEAD, `${CLAIMS}\u0000`)),
  raw('line break in a string', STRICT, signed(HEAD, `${OPEN},"x":"\n"}`)),
  raw('NaN', STRICT, signed(HEAD, `${OPEN},"x":NaN}`)),
  raw('a number in hexadecimal', STRICT, signed(HEAD, `${OPEN},"x":0x10}`)),
  raw('nested 5,000 deep', 'CWE-674', signed(HEAD, `${OPEN},"x":${NESTED}}`), harmless()),
  raw('1,000 members', 'CWE-400', signed(HEAD, `${OPEN},${MEMBERS}}`), harmless()),
];

function withPayload(payload: Buffer): string {
  return signParts(base64url(HEAD), base64url(payload));
}

/** A payload whose characters are its bytes. */
function withBytes(payload: string): string {
  return withPayload(Buffer.from(payload, 'latin1'));
}

const CANONICAL = 'RFC 7515 section 2: base64url without padding, line breaks or other characters';
/** Padded to a length whose last character has spare bits. */
const LOOSE = base64url(CLAIMS.padEnd(CLAIMS.length + 2 - ((CLAIMS.length + 1) % 3)));
const LOOSE_HEAD = base64url(HEAD.padEnd(HEAD.length + 2 - ((HEAD.length + 1) % 3)));

const IN_BASE64 = Buffer.from(`${CLAIMS}  ???>>>`).toString('base64').replace(/=+$/, '');

const BASE64: readonly Attack[] = [
  raw('signed header in another spelling', CANONICAL, signParts(notCanonical(LOOSE_HEAD), PAYLOAD)),
  raw('signed payload in another spelling', CANONICAL, signParts(HEADER, notCanonical(LOOSE))),
  raw('signature in another spelling', CANONICAL, withParts({ signature: notCanonical(SIGNATURE) })),
  raw('signature with padding', CANONICAL, `${GOOD}==`),
  raw('signature in the alphabet of base64', CANONICAL, withParts({ signature: `+/${SIGNATURE.slice(2)}` })),
  raw('payload in the alphabet of base64', CANONICAL, signParts(HEADER, IN_BASE64)),
  raw('padding inside', CANONICAL, `${HEADER}=.${PAYLOAD}.${SIGNATURE}`, refused('malformed_authorization')),
  raw('a line break inside', CANONICAL, `${HEADER}.${PAYLOAD}\t.${SIGNATURE}`, refused('malformed_authorization')),
  raw('a blank inside', CANONICAL, `${HEADER}.${PAYLOAD} .${SIGNATURE}`, refused('malformed_authorization')),
  raw('a tilde, which b64token allows', 'RFC 6750 section 2.1', `${HEADER}.${PAYLOAD}~.${SIGNATURE}`),
  raw('a part of a length that no bytes have', CANONICAL, `${HEADER}.${PAYLOAD}.A`),
  raw('percent-encoded', CANONICAL, GOOD.replace('.', '%2E'), refused('malformed_authorization')),
];

const PARTS = 'RFC 7515 section 7.1';

const STRUCTURE: readonly Attack[] = [
  raw('one part', PARTS, HEADER),
  raw('two parts', PARTS, `${HEADER}.${PAYLOAD}`),
  raw('four parts', PARTS, `${GOOD}.${SIGNATURE}`),
  raw('points alone', PARTS, '..'),
  raw('two thousand points', 'CVE-2025-27144 (go-jose): splitting without a bound', '.'.repeat(2_000)),
  raw('an empty header', PARTS, `.${PAYLOAD}.${SIGNATURE}`),
  raw('an empty payload', PARTS, signParts(HEADER, '')),
  raw('a point in front', PARTS, `.${GOOD}`),
  raw('a point after', PARTS, `${GOOD}.`),
  raw('two good tokens in one', PARTS, `${GOOD}.${GOOD}`),
  raw('header and payload swapped', PARTS, `${PAYLOAD}.${HEADER}.${SIGNATURE}`),
  raw('an opaque token', 'RFC 6750 section 2.1', 'mF_9.B5f-4.1JqM'),
  raw('as long as node lets through', 'CVE-2025-61920 (Authlib)', `${HEADER}.${'A'.repeat(15_500)}.${'A'.repeat(12)}`),
];

export const ENCODING_ATTACKS: readonly Attack[] = [...DUPLICATES, ...JSON_TEXTS, ...BASE64, ...STRUCTURE];

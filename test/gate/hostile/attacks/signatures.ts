import { base64url, token } from '../../../support/issuer';
import { sign as signBytes } from 'node:crypto';
import type { TestKey } from '../../../support/keys';
import { harmless, refused } from '../support/attack';
import type { Attack, Expected } from '../support/attack';
import { ED, ES, ES384, GOOD, PS, RS, withParts } from '../support/forge';

const BAD = refused('bad_signature');
const MALFORMED = refused('malformed_token');
/** Order of P-256 (FIPS 186-4, D.1.2.3) and of Ed25519's base point (RFC 8032 section 5.1). */
const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const ED25519_ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;

const ONE_RSA = token({ key: RS });
const ONE_PS = token({ key: PS });
const ONE_ED = token({ key: ED });
const signatureOf = (jwt: string): Buffer => Buffer.from(jwt.split('.')[2] ?? '', 'base64url');
const ES_SIGNATURE = signatureOf(GOOD);
const [R, S] = [toNumber(ES_SIGNATURE.subarray(0, 32)), toNumber(ES_SIGNATURE.subarray(32))];

function toNumber(bytes: Buffer): bigint {
  return BigInt(`0x${bytes.toString('hex')}`);
}

function bytes32(value: bigint): Buffer {
  return Buffer.from(value.toString(16).padStart(64, '0'), 'hex');
}

/** An ES256 signature of these two numbers. */
function pair(r: bigint, s: bigint): string {
  return resigned(Buffer.concat([bytes32(r), bytes32(s)]));
}

function row(name: string, source: string, jwt: string, expected: Expected = BAD): Attack {
  return { name, source, input: { token: jwt }, expected };
}

/** The same token with another signature. */
const resigned = (signature: string | Buffer, of = GOOD): string => withParts({ signature }, of);

/** Flips one bit of a signature. */
function flipped(jwt: string, at: number): string {
  const bytes = signatureOf(jwt);
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
  return resigned(bytes, jwt);
}

const [JWA, EDDSA_RFC, JWS] = ['RFC 7518 section 3.4', 'RFC 8032 section 5.1.7', 'RFC 7515 section 5.2'];
const RANGE = 'FIPS 186-4 section 6.4: r and s lie in [1, n - 1]';

const ECDSA: readonly Attack[] = [
  row('ES256: r and s of 0, the psychic signature', 'CVE-2022-21449 (Java)', pair(0n, 0n)),
  row('ES256: r of 0', 'CVE-2021-43572 (starkbank ecdsa)', pair(0n, S)),
  row('ES256: s of 0', 'CVE-2021-43572 (starkbank ecdsa)', pair(R, 0n)),
  row('ES256: r of n', RANGE, pair(P256_ORDER, S)),
  row('ES256: s of n', RANGE, pair(R, P256_ORDER)),
  row('ES256: r and s of n', 'CVE-2022-21449 (Java): n is 0 modulo n', pair(P256_ORDER, P256_ORDER)),
  row('ES256: s of n + s', RANGE, pair(R, (S + P256_ORDER) % 2n ** 256n)),
  row('ES256: r and s of 1', RANGE, pair(1n, 1n)),
  row('ES256: r and s of n - 1', RANGE, pair(P256_ORDER - 1n, P256_ORDER - 1n)),
  row('ES256: r and s of 2^256 - 1', RANGE, pair(2n ** 256n - 1n, 2n ** 256n - 1n)),
  row('ES256: r and s swapped', RANGE, pair(S, R)),
  row('ES256: n - s, which verifies too', 'SEC 1 section 4.1.4', pair(R, P256_ORDER - S), harmless()),
  row('ES256: DER in place of raw', JWA, token({ sign: (input) => signBytes('sha256', input, ES.privateKey) })),
  row('ES256: 63 bytes', JWA, resigned(ES_SIGNATURE.subarray(0, 63))),
  row('ES256: 65 bytes', JWA, resigned(Buffer.concat([ES_SIGNATURE, Buffer.of(0)]))),
  row('ES256: a zero byte in front of each number', 'CVE-2020-13822 (elliptic)', resigned(padded())),
  row('ES256: the signature twice', JWA, resigned(Buffer.concat([ES_SIGNATURE, ES_SIGNATURE]))),
  row('ES256: r alone', JWA, resigned(ES_SIGNATURE.subarray(0, 32))),
  row('ES256: a bit flipped', JWS, flipped(GOOD, 0)),
  row('ES256: the last bit flipped', JWS, flipped(GOOD, 63)),
  row('ES384: r and s of 0', 'CVE-2022-21449 (Java)', resigned(Buffer.alloc(96), token({ key: ES384 }))),
  row('ES384: the length of ES256', JWA, resigned(ES_SIGNATURE, token({ key: ES384 }))),
];

function padded(): Buffer {
  return Buffer.concat([Buffer.of(0), ES_SIGNATURE.subarray(0, 32), Buffer.of(0), ES_SIGNATURE.subarray(32)]);
}

const RSA_SIGNATURE = signatureOf(ONE_RSA);
const MODULUS = Buffer.from(String(RS.jwk['n']), 'base64url');

/** An RS256 signature of these bytes. */
function rsa(signature: Buffer): string {
  return withParts({ signature }, ONE_RSA);
}

const RSA: readonly Attack[] = [
  row('RS256: all zero', 'RFC 8017 section 8.2.2', rsa(Buffer.alloc(256))),
  row('RS256: the number 1', 'RFC 8017 section 8.2.2', rsa(Buffer.concat([Buffer.alloc(255), Buffer.of(1)]))),
  row('RS256: the modulus', 'RFC 8017 section 5.2.2: smaller than n', rsa(MODULUS)),
  row('RS256: all ones', 'RFC 8017 section 5.2.2', rsa(Buffer.alloc(256, 0xff))),
  row('RS256: one byte', 'RFC 8017 section 8.2.2', rsa(Buffer.of(1))),
  row('RS256: truncated', 'RFC 8017 section 8.2.2', rsa(RSA_SIGNATURE.subarray(0, 255))),
  row('RS256: a zero byte in front', 'RFC 8017 section 8.2.2', rsa(Buffer.concat([Buffer.of(0), RSA_SIGNATURE]))),
  row('RS256: a zero byte after', 'RFC 8017 section 8.2.2', rsa(Buffer.concat([RSA_SIGNATURE, Buffer.of(0)]))),
  row('RS256: 4 kB', 'CWE-400', rsa(Buffer.alloc(4_096, 1))),
  row('RS256: padding in plain sight', 'CVE-2006-4339 (Bleichenbacher)', rsa(paddedDigest())),
  row('RS256: a bit flipped', JWS, flipped(ONE_RSA, 128)),
  row('PS256: all zero', 'RFC 8017 section 8.1.2', resigned(Buffer.alloc(256), ONE_PS)),
  row('PS256: a bit flipped', 'RFC 8017 section 8.1.2', flipped(ONE_PS, 255)),
];

/** What a signature would be for e = 1, or for an implementation that compares without the exponent: 00 01 FF .. 00 and rubbish. */
function paddedDigest(): Buffer {
  const block = Buffer.alloc(256, 0xff);
  block.writeUInt16BE(1, 0);
  block.writeUInt8(0, 10);
  return block;
}

const ED_SIGNATURE = signatureOf(ONE_ED);

/** The signature with another S (little-endian, RFC 8032 section 5.1.6). */
function edwards(s: bigint): string {
  return resigned(Buffer.concat([ED_SIGNATURE.subarray(0, 32), bytes32(s).reverse()]), ONE_ED);
}

const ED_S = toNumber(Buffer.from(ED_SIGNATURE.subarray(32)).reverse());

const EDDSA: readonly Attack[] = [
  row('EdDSA: all zero', EDDSA_RFC, resigned(Buffer.alloc(64), ONE_ED)),
  row('EdDSA: S + L', 'RFC 8032 section 8.4: not malleable', edwards(ED_S + ED25519_ORDER)),
  row('EdDSA: S of L', EDDSA_RFC, edwards(ED25519_ORDER)),
  row('EdDSA: the neutral element and S of 0', EDDSA_RFC, resigned(neutral(), ONE_ED)),
  row('EdDSA: truncated', EDDSA_RFC, resigned(ED_SIGNATURE.subarray(0, 63), ONE_ED)),
  row('EdDSA: a byte too many', EDDSA_RFC, resigned(Buffer.concat([ED_SIGNATURE, Buffer.of(0)]), ONE_ED)),
  row('EdDSA: a bit flipped', EDDSA_RFC, flipped(ONE_ED, 40)),
];

function neutral(): Buffer {
  const bytes = Buffer.alloc(64);
  bytes.writeUInt8(1, 0);
  return bytes;
}

const other = (key: TestKey): string => token({ key, claims: { scope: 'orders:read payments:refund' } });
const payloadOf = (jwt: string): string => jwt.split('.')[1] ?? '';

const OTHER_HEADER = '{"alg":"ES256","typ":"at+jwt","kid":"ES256-1","x":1}';

const SPLICED: readonly Attack[] = [
  row('no signature', 'CVE-2020-28042 (ServiceStack)', resigned(''), MALFORMED),
  row('the signature of another token', JWS, resigned(other(ES).split('.')[2] ?? '')),
  row('the payload of another token', JWS, withParts({ payload: payloadOf(other(ES)) })),
  row('one claim changed', JWS, withParts({ payload: base64url('{"scope":"payments:refund"}') })),
  row('one blank more in the payload', JWS, withParts({ payload: `${payloadOf(GOOD)}IA` }), MALFORMED),
  row('the header of another token', JWS, withParts({ header: base64url(OTHER_HEADER) })),
  row('bad claims and a bad signature: the response names the signature', JWS, withParts({ payload: base64url('{}') })),
];

export const SIGNATURE_ATTACKS: readonly Attack[] = [...ECDSA, ...RSA, ...EDDSA, ...SPLICED];

import { constants, verify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { AuthError } from '../core/auth-error';
import { ownMembers } from '../core/objects';
import type { Algorithm } from './algorithms';
import type { UnverifiedToken } from './jws';

/** Says whether a signature over some bytes is good. */
type Verification = (input: Buffer, key: KeyObject, signature: Buffer) => boolean;

/** The accepted algorithms: a token cannot select anything that is not in this table. */
const VERIFICATIONS: Readonly<Record<Algorithm, Verification>> = {
  RS256: rsa('sha256'),
  RS384: rsa('sha384'),
  RS512: rsa('sha512'),
  PS256: rsaPss('sha256'),
  PS384: rsaPss('sha384'),
  PS512: rsaPss('sha512'),
  ES256: ecdsa('sha256'),
  ES384: ecdsa('sha384'),
  ES512: ecdsa('sha512'),
  EdDSA: ed25519,
  Ed25519: ed25519,
};

/**
 * Verifies the signature with a cached key object (RFC 7515 section 5.2). Times are not looked at here: claims are
 * checked after the signature.
 *
 * @throws AuthError `bad_signature`
 */
export function verifySignature(token: UnverifiedToken, key: KeyObject, algorithm: Algorithm): void {
  let isGood: boolean;
  try {
    isGood = VERIFICATIONS[algorithm](Buffer.from(token.signingInput, 'latin1'), key, token.signature);
  } catch (cause) {
    throw new AuthError('bad_signature', { cause });
  }
  if (!isGood) throw new AuthError('bad_signature');
}

/** RFC 8037 section 3.1: Ed25519 hashes by itself. */
function ed25519(input: Buffer, key: KeyObject, signature: Buffer): boolean {
  return verify(null, input, ownMembers({ key }), signature);
}

/** RSASSA-PKCS1-v1_5 (RFC 7518 section 3.3). */
function rsa(hash: string): Verification {
  return (input, key, signature) => verify(hash, input, ownMembers({ key }), signature);
}

/**
 * RSASSA-PSS, the salt as long as the hash (RFC 7518 section 3.5), the signature as long as the modulus (RFC 8017
 * section 8.1.2, step 1). OpenSSL checks that length for PKCS #1 v1.5 only: here it would accept a signature without its
 * leading zero bytes, and so a second spelling of the same token.
 */
function rsaPss(hash: string): Verification {
  const padding = constants.RSA_PKCS1_PSS_PADDING;
  const saltLength = constants.RSA_PSS_SALTLEN_DIGEST;
  return (input, key, signature) =>
    signature.length === modulusBytes(key) && verify(hash, input, ownMembers({ key, padding, saltLength }), signature);
}

/** The length of an RSA key's modulus, in bytes. */
function modulusBytes(key: KeyObject): number {
  return Math.ceil((key.asymmetricKeyDetails?.modulusLength ?? 0) / 8);
}

/** ECDSA, r and s concatenated, not DER (RFC 7518 section 3.4). */
function ecdsa(hash: string): Verification {
  return (input, key, signature) =>
    verify(hash, input, ownMembers({ key, dsaEncoding: 'ieee-p1363' as const }), signature);
}

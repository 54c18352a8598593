import { createPublicKey } from 'node:crypto';
import type { JsonWebKey, KeyObject } from 'node:crypto';
import { isObject } from '../../core/objects';
import { ALGORITHMS, isCompatible, namesOf } from '../algorithms';
import type { Algorithm } from '../algorithms';

/** A public key as a JSON Web Key (RFC 7517 section 4). Members are checked, not trusted. */
export type Jwk = Readonly<Record<string, unknown>>;

/** A key that may verify signatures. Its identity is stable: the same key is the same object after a refresh. */
export interface VerificationKey {
  readonly keyId: string | undefined;
  /** Accepted algorithms: the JWK's `alg`, or all that its type and curve allow. */
  readonly algorithms: readonly Algorithm[];
  readonly key: KeyObject;
}

/**
 * Says why a JWK must not verify signatures, judged by its members alone (RFC 7517 section 4, RFC 8725 section 3.5);
 * `undefined` when it may.
 */
export function unsuitable(jwk: unknown): string | undefined {
  if (!isObject(jwk)) return 'it is not an object';
  const { kty, use, key_ops: operations, kid, alg } = jwk;
  if (kty !== 'RSA' && kty !== 'EC' && kty !== 'OKP') return 'its kty must be RSA, EC or OKP';
  // A private key in a published set is known to the world: what it signs proves nothing.
  if ('d' in jwk) return 'it is a private key';
  if (use !== undefined && use !== 'sig') return 'its use is not sig';
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) {
    return 'its key_ops lack verify';
  }
  if (kid !== undefined && (typeof kid !== 'string' || kid === '')) return 'its kid is not a non-empty string';
  if (alg !== undefined && !ALGORITHMS.some((known) => known === alg))
    return 'its alg is not a known signature algorithm';
  return undefined;
}

/** Time of an RSA verification grows with the square of the modulus and with the length of the exponent: 10 ms are possible. */
const MAX_EXPONENT = 2n ** 32n;
const MAX_MODULUS_BITS = 8_192;

/**
 * Checks the key material itself.
 *
 * @param maxModulusBits - longest accepted RSA modulus; shorter for keys that callers choose
 * @returns the key, or why it is ignored.
 */
export function toVerificationKey(
  jwk: Jwk,
  key: KeyObject,
  maxModulusBits = MAX_MODULUS_BITS,
): VerificationKey | string {
  const { modulusLength, publicExponent } = key.asymmetricKeyDetails ?? {};
  // RFC 7518 section 3.3: 2048 bits or larger. With e = 1 a signature is its own message.
  if (modulusLength !== undefined && modulusLength < 2048) return 'its modulus has less than 2048 bits';
  if (publicExponent !== undefined && (publicExponent < 3n || publicExponent % 2n === 0n))
    return 'its exponent is weak';
  if (modulusLength !== undefined && modulusLength > maxModulusBits) {
    return `its modulus has more than ${maxModulusBits} bits`;
  }
  if (publicExponent !== undefined && publicExponent > MAX_EXPONENT) return 'its exponent is larger than 2^32';
  // `unsuitable()` has refused an `alg` that is not one of these.
  const named = typeof jwk['alg'] === 'string' ? namesOf(jwk['alg'] as Algorithm) : ALGORITHMS;
  const algorithms = named.filter((algorithm) => isCompatible(key, algorithm));
  if (algorithms.length === 0) return 'its type or curve does not fit any accepted algorithm';
  return { keyId: jwk['kid'] as string | undefined, algorithms, key };
}

/** Reads the key material of a JWK (RFC 7518 section 6); `undefined` when it is broken, for example a point off its curve. */
export function importJwk(jwk: Jwk): KeyObject | undefined {
  try {
    return createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' });
  } catch {
    return undefined;
  }
}

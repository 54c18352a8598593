import type { KeyObject } from 'node:crypto';
import { isList } from '../core/options';

/** Signature algorithms that can be accepted (RFC 7518 section 3.1, RFC 8037, RFC 9864). No HMAC: a key set has public keys only. */
export const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const;

/** One accepted signature algorithm. */
export type Algorithm = (typeof ALGORITHMS)[number];

/** Whether a value is a list of at least one of them. RFC 8725 section 3.2: any caller can sign an HMAC with a published key. */
export function isAlgorithmList(value: unknown): value is readonly Algorithm[] {
  const known: readonly unknown[] = ALGORITHMS;
  return isList(value) && value.length > 0 && value.every((one) => known.includes(one));
}

/** RFC 7518 section 3.4: each ECDSA algorithm goes with exactly one curve. Names as OpenSSL has them. */
const CURVES: Readonly<Partial<Record<Algorithm, string>>> = {
  ES256: 'prime256v1',
  ES384: 'secp384r1',
  ES512: 'secp521r1',
};

/** Whether a key can verify an algorithm at all: its type, its curve, and for RSA-PSS keys the parameters they are bound to. */
export function isCompatible(key: KeyObject, algorithm: Algorithm): boolean {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
  if (algorithm === 'EdDSA') return type === 'ed25519';
  if (algorithm.startsWith('ES')) return type === 'ec' && details?.namedCurve === CURVES[algorithm];
  if (algorithm.startsWith('RS')) return type === 'rsa';
  if (type === 'rsa') return true;
  return type === 'rsa-pss' && (details?.hashAlgorithm ?? `sha${algorithm.slice(2)}`) === `sha${algorithm.slice(2)}`;
}

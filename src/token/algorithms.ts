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
  'Ed25519',
] as const;

/** One accepted signature algorithm. */
export type Algorithm = (typeof ALGORITHMS)[number];

/** RFC 9864 section 2.2: with the only curve that is accepted here, both names mean the same signature. */
const ED25519_NAMES: readonly Algorithm[] = ['EdDSA', 'Ed25519'];

/** All names of the signature that an algorithm makes. */
export function namesOf(algorithm: Algorithm): readonly Algorithm[] {
  return ED25519_NAMES.includes(algorithm) ? ED25519_NAMES : [algorithm];
}

/**
 * Reads a list of at least one algorithm, with all names of each; `undefined` for anything else. RFC 8725 section 3.2:
 * any caller can sign an HMAC with a published key.
 */
export function readAlgorithms(value: unknown): readonly Algorithm[] | undefined {
  const known: readonly unknown[] = ALGORITHMS;
  if (!isList(value) || value.length === 0 || !value.every((one) => known.includes(one))) return undefined;
  return [...new Set((value as readonly Algorithm[]).flatMap(namesOf))];
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
  if (ED25519_NAMES.includes(algorithm)) return type === 'ed25519';
  if (algorithm.startsWith('ES')) return type === 'ec' && details?.namedCurve === CURVES[algorithm];
  if (algorithm.startsWith('RS')) return type === 'rsa';
  if (type === 'rsa') return true;
  return type === 'rsa-pss' && (details?.hashAlgorithm ?? `sha${algorithm.slice(2)}`) === `sha${algorithm.slice(2)}`;
}

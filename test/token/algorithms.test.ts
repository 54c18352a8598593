import { generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { ALGORITHMS, isCompatible } from '../../src/token/signature';
import { testKey } from '../support/keys';

function rsaPss(hash?: string): KeyObject {
  const parameters = hash === undefined ? {} : { hashAlgorithm: hash, mgf1HashAlgorithm: hash };
  return generateKeyPairSync('rsa-pss', { modulusLength: 512 * 2, ...parameters }).publicKey;
}

it.each<[string, () => KeyObject, readonly string[]]>([
  ['RSA', () => testKey('RS256').privateKey, ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']],
  ['RSA-PSS without parameters', () => rsaPss(), ['PS256', 'PS384', 'PS512']],
  ['RSA-PSS bound to SHA-384', () => rsaPss('sha384'), ['PS384']],
  ['P-256', () => testKey('ES256').privateKey, ['ES256']],
  ['P-384', () => testKey('ES384').privateKey, ['ES384']],
  ['P-521', () => testKey('ES512').privateKey, ['ES512']],
  ['Ed25519', () => testKey('EdDSA').privateKey, ['EdDSA', 'Ed25519']],
  ['Ed448', () => generateKeyPairSync('ed448').publicKey, []],
  ['a secp256k1 key', () => generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey, []],
  ['X25519', () => generateKeyPairSync('x25519').publicKey, []],
])('a key of type %s can verify exactly the algorithms of its type, curve and parameters', (_type, make, expected) => {
  const key = make();
  expect(ALGORITHMS.filter((algorithm) => isCompatible(key, algorithm)).sort()).toEqual([...expected].sort());
});

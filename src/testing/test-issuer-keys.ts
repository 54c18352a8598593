import { constants, createHmac, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import type { KeyObject, SigningOptions } from 'node:crypto';
import type { Algorithm } from '../token/algorithms';
import type { Jwk } from '../token/keys/jwk';

/** A signing key and what is published of it. */
export interface TestKey {
  readonly keyId: string;
  /** The public key (RFC 7517 section 4). */
  readonly jwk: Jwk;
  sign(input: string): Buffer;
  /** An HMAC whose secret is the published key: what a gate that pins no algorithm falls for (RFC 8725 section 2.1). */
  confuse(input: string): Buffer;
}

const RSA_BITS = 2048;

/** Makes a key for one algorithm. */
export function testKey(algorithm: Algorithm): TestKey {
  const { publicKey, privateKey } = generate(algorithm);
  const keyId = randomUUID();
  const hash = algorithm === 'EdDSA' ? null : `sha${algorithm.slice(2)}`;
  return {
    keyId,
    jwk: { ...publicKey.export({ format: 'jwk' }), kid: keyId, alg: algorithm, use: 'sig' },
    sign: (input) => sign(hash, Buffer.from(input), { key: privateKey, ...signatureForm(algorithm) }),
    confuse: (input) =>
      createHmac('sha256', publicKey.export({ type: 'spki', format: 'pem' }))
        .update(input)
        .digest(),
  };
}

function generate(algorithm: Algorithm): { publicKey: KeyObject; privateKey: KeyObject } {
  switch (algorithm) {
    case 'EdDSA':
      return generateKeyPairSync('ed25519');
    case 'ES256':
      return generateKeyPairSync('ec', { namedCurve: 'P-256' });
    case 'ES384':
      return generateKeyPairSync('ec', { namedCurve: 'P-384' });
    case 'ES512':
      return generateKeyPairSync('ec', { namedCurve: 'P-521' });
    default:
      return generateKeyPairSync('rsa', { modulusLength: RSA_BITS });
  }
}

/** RFC 7518 sections 3.4 and 3.5: r and s side by side, and a salt as long as the hash. */
function signatureForm(algorithm: Algorithm): SigningOptions {
  if (algorithm.startsWith('ES')) return { dsaEncoding: 'ieee-p1363' };
  if (!algorithm.startsWith('PS')) return {};
  return { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
}

import { constants, createHmac, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import type { KeyObject, SigningOptions } from 'node:crypto';
import { didYouMean } from '../../core/options';
import type { Algorithm } from '../../token/algorithms';

/** A signing key with its public half. */
export interface TestKey {
  readonly keyId: string;
  /** The public key (RFC 7517 section 4). */
  readonly jwk: Readonly<Record<string, unknown>>;
  sign(input: string): Buffer;
  /** An HMAC whose secret is the public key: a gate that pins no algorithm accepts it (RFC 8725 section 2.1). */
  signHmac(input: string): Buffer;
}

/** The keys of a test issuer: one signs, all are published. */
export interface TestKeySet {
  /** The key that signs. */
  readonly signing: TestKey;
  /** The published key set (RFC 7517 section 5). The object stays the same; every change replaces its list. */
  readonly jwks: { readonly keys: readonly TestKey['jwk'][] };
  /** Signs with a new key from now on; returns its id. */
  rotate(): string;
  /**
   * Removes one earlier key, or all of them.
   *
   * @throws Error when there is none
   */
  remove(keyId?: string): void;
}

/** Makes a key for one algorithm. */
export function testKey(algorithm: Algorithm): TestKey {
  const { publicKey, privateKey } = generate(algorithm);
  const keyId = randomUUID();
  const hash = algorithm.startsWith('Ed') ? null : `sha${algorithm.slice(2)}`;
  return {
    keyId,
    jwk: { ...publicKey.export({ format: 'jwk' }), kid: keyId, alg: algorithm, use: 'sig' },
    sign: (input) => sign(hash, Buffer.from(input), { key: privateKey, ...signatureForm(algorithm) }),
    signHmac(input) {
      const secret = publicKey.export({ type: 'spki', format: 'pem' });
      return createHmac('sha256', secret).update(input).digest();
    },
  };
}

/** Makes a key set with one key. */
export function testKeySet(algorithm: Algorithm): TestKeySet {
  let signing = testKey(algorithm);
  const jwks = { keys: [signing.jwk] };

  return {
    jwks,
    get signing() {
      return signing;
    },
    rotate() {
      signing = testKey(algorithm);
      jwks.keys = [...jwks.keys, signing.jwk];
      return signing.keyId;
    },
    remove(keyId) {
      const earlier = jwks.keys.flatMap(({ kid }) => (kid === signing.keyId ? [] : [String(kid)]));
      if (keyId === signing.keyId) throw new Error('removeKey(): this key signs; rotate() first');
      if (earlier.length === 0) throw new Error('removeKey(): the only key is the one that signs; rotate() first');
      if (keyId !== undefined && !earlier.includes(keyId)) {
        throw new Error(`removeKey(): no key ${JSON.stringify(keyId)} is published${didYouMean(keyId, earlier)}`);
      }
      jwks.keys = jwks.keys.filter(({ kid }) => (keyId === undefined ? kid === signing.keyId : kid !== keyId));
    },
  };
}

function generate(algorithm: Algorithm): { publicKey: KeyObject; privateKey: KeyObject } {
  if (algorithm.startsWith('Ed')) return generateKeyPairSync('ed25519');
  if (!algorithm.startsWith('ES')) return generateKeyPairSync('rsa', { modulusLength: 2048 });
  const bits = algorithm === 'ES512' ? '521' : algorithm.slice(2);
  return generateKeyPairSync('ec', { namedCurve: `P-${bits}` });
}

/** RFC 7518 sections 3.4 and 3.5: r and s concatenated; a salt as long as the hash. */
function signatureForm(algorithm: Algorithm): SigningOptions {
  if (algorithm.startsWith('ES')) return { dsaEncoding: 'ieee-p1363' };
  if (!algorithm.startsWith('PS')) return {};
  return { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
}

import { didYouMean } from '../core/options';
import type { Algorithm } from '../token/algorithms';
import type { Jwk } from '../token/keys/jwk';
import { testKey } from './test-issuer-keys';
import type { TestKey } from './test-issuer-keys';

/** The keys of a test issuer: one signs, all are published. */
export interface TestKeySet {
  /** The key that signs. */
  readonly signing: TestKey;
  /** What is published (RFC 7517 section 5): one object, whose list is another one after every change. */
  readonly jwks: { readonly keys: readonly Jwk[] };
  /** Signs with a new key from now on; answers its id. */
  rotate(): string;
  /**
   * Withdraws an earlier key, or all of them.
   *
   * @throws Error when there is none
   */
  remove(keyId?: string): void;
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

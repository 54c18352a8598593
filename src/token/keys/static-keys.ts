import { AuthError } from '../../core/auth-error';
import { importJwk, toVerificationKey, unsuitable } from './jwk';
import type { Jwk, VerificationKey } from './jwk';
import { KeySet } from './key-source';
import type { KeySource } from './key-source';

/** A JSON Web Key Set (RFC 7517 section 5), or just its keys. */
export type Jwks = { readonly keys: readonly Jwk[] } | readonly Jwk[];

/**
 * Keys that are given, not fetched: for tests and for issuers whose keys are distributed by other means. When the list
 * of a key set is replaced by another one, that one counts from the next request on.
 *
 * @throws TypeError naming each key that cannot be used: somebody chose these keys, so none is ignored in silence.
 */
export function staticKeys(jwks: Jwks): KeySource {
  let list = listOf(jwks);
  let keys = readKeys(list);

  function current(): KeySet {
    const latest = listOf(jwks);
    if (latest !== list) [keys, list] = [readKeys(latest), latest];
    return keys;
  }

  return {
    find(header) {
      const key = current().find(header);
      if (!key) throw new AuthError('unknown_key');
      return key;
    },
    has: (key) => current().has(key),
    ready: () => Promise.resolve(),
    status: () => ({ state: 'fresh', keys: current().size }),
    close() {},
  };
}

function listOf(jwks: Jwks): unknown {
  return isArray(jwks) ? jwks : jwks.keys;
}

function readKeys(list: unknown): KeySet {
  if (!Array.isArray(list) || list.length === 0) {
    throw new TypeError('authenticate(): option "keys" must be a JSON Web Key Set with at least one key');
  }
  return new KeySet(list.map(readKey));
}

/** Not `'keys' in jwks`: every array has a method of that name. */
function isArray(jwks: Jwks): jwks is readonly Jwk[] {
  return Array.isArray(jwks);
}

function readKey(jwk: Jwk, index: number): VerificationKey {
  const refuse = (why: string): never => {
    throw new TypeError(`authenticate(): option "keys": key ${index} cannot verify tokens: ${why}`);
  };
  const why = unsuitable(jwk);
  if (why !== undefined) return refuse(why);
  const key = importJwk(jwk);
  const verificationKey = key ? toVerificationKey(jwk, key) : 'its key material is broken';
  return typeof verificationKey === 'string' ? refuse(verificationKey) : verificationKey;
}

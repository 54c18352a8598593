import { AuthError } from '../../core/auth-error';
import type { KeyStatus } from '../../core/gate-status';
import type { UnverifiedHeader } from '../jws';
import { importJwk, toVerificationKey, unsuitable } from './jwk';
import type { Jwk, VerificationKey } from './jwk';

/** Where the keys of one issuer come from. */
export interface KeySource {
  /**
   * Finds the key that a header names; synchronously when the keys are cached.
   *
   * @param checkToken - called where the key is unknown, before anything else is done about it; throws where the token is
   * refused whatever its key is
   * @throws AuthError `unknown_key`, `unusable_key`, `algorithm_not_allowed`, `too_many_unknown_keys` when the issuer has
   * been asked too often, or `keys_unavailable` when the key set is not available.
   */
  find(header: UnverifiedHeader, checkToken: () => void): VerificationKey | Promise<VerificationKey>;
  /** Whether a key found earlier may still be used. */
  has(key: VerificationKey): boolean;
  /** Resolves once there are keys. */
  ready(): Promise<void>;
  status(): KeyStatus;
  close(): void;
}

/** An immutable set of keys, by key id. */
export class KeySet {
  readonly #byId = new Map<string | undefined, VerificationKey[]>();
  readonly #all: ReadonlySet<VerificationKey>;

  constructor(keys: Iterable<VerificationKey>) {
    this.#all = new Set(keys);
    for (const key of this.#all) {
      const sameId = this.#byId.get(key.keyId);
      if (sameId) sameId.push(key);
      else this.#byId.set(key.keyId, [key]);
    }
  }

  get size(): number {
    return this.#all.size;
  }

  /** Whether another set has all of these keys. */
  isWithin(other: KeySet): boolean {
    return [...this.#all].every((key) => other.has(key));
  }

  has(key: VerificationKey): boolean {
    return this.#all.has(key);
  }

  /**
   * The key for a header, or `undefined` when the set has none of that id. A token without `kid` is only accepted
   * where the set has a single fitting key: trying keys in turn would make every key good for every token.
   *
   * @throws AuthError `algorithm_not_allowed` when the key is for another algorithm; `unusable_key` when several have its id.
   */
  find({ keyId, algorithm }: UnverifiedHeader): VerificationKey | undefined {
    const candidates = keyId === undefined ? [...this.#all] : (this.#byId.get(keyId) ?? []);
    if (candidates.length === 0) return undefined;
    const fitting = candidates.filter((key) => key.algorithms.includes(algorithm));
    if (fitting.length === 0) {
      throw new AuthError('algorithm_not_allowed', { privateDetail: `the key is not for ${algorithm}` });
    }
    if (fitting.length > 1 && keyId !== undefined) {
      throw new AuthError('unusable_key', {
        privateDetail: `the key set has several keys with its kid for ${algorithm}`,
      });
    }
    return fitting.length === 1 ? fitting[0] : undefined;
  }
}

/** A JSON Web Key Set (RFC 7517 section 5), or just its keys. */
export type Jwks = { readonly keys: readonly object[] } | readonly object[];

/**
 * Keys that are given, not fetched: for tests and for issuers whose keys are distributed by other means. When the list
 * of a key set is replaced by another one, that one counts from the next request on.
 *
 * @param factory - what the keys were given to, for messages
 * @param canBeEmpty - whether no key at all is accepted: then every signed token is refused as `unknown_key`
 * @throws TypeError naming each key that cannot be used: the app chose these keys, so none is ignored silently.
 */
export function staticKeys(jwks: Jwks, factory = 'authenticate', canBeEmpty = false): KeySource {
  let list: unknown;
  let keys: KeySet | undefined;

  function current(): KeySet {
    // Not `'keys' in jwks`: every array has a method of that name.
    const latest = Array.isArray(jwks) ? jwks : (jwks as { readonly keys: readonly object[] }).keys;
    if (!keys || latest !== list) [keys, list] = [readKeys(latest, factory, canBeEmpty), latest];
    return keys;
  }

  current();
  return {
    find(header, checkToken) {
      const key = current().find(header);
      if (key) return key;
      checkToken();
      throw new AuthError('unknown_key');
    },
    has: (key) => current().has(key),
    ready: () => Promise.resolve(),
    status: () => ({ state: 'fresh', keys: current().size }),
    close() {},
  };
}

function readKeys(list: unknown, factory: string, canBeEmpty: boolean): KeySet {
  if (!Array.isArray(list) || (list.length === 0 && !canBeEmpty)) {
    throw new TypeError(`${factory}(): option "keys" must be a JSON Web Key Set with at least one key`);
  }
  return new KeySet(list.map((jwk: Jwk, index) => readKey(jwk, index, factory)));
}

function readKey(jwk: Jwk, index: number, factory: string): VerificationKey {
  const refuse = (why: string): never => {
    throw new TypeError(`${factory}(): option "keys": key ${index} cannot verify tokens: ${why}`);
  };
  const why = unsuitable(jwk);
  if (why !== undefined) return refuse(why);
  const key = importJwk(jwk);
  const verificationKey = key ? toVerificationKey(jwk, key) : 'its key material is broken';
  return typeof verificationKey === 'string' ? refuse(verificationKey) : verificationKey;
}

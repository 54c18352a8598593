import { createPublicKey, type KeyObject } from 'node:crypto';
import { AuthError } from '../../core/errors';
import type { KeyStatus } from '../../core/gate-status';
import { attempt, isObject, ownMembers } from '../../core/objects';
import { describe } from '../../core/words';
import type { UnverifiedHeader } from '../jws';
import { ALGORITHMS, isCompatible, readAlgorithms, verificationCostUs, type Algorithm } from '../signature';
import type { JsonObject } from '../../net/strict-json';

/** A key that may verify signatures. Its identity is stable: the same key is the same object after a refresh. */
export interface VerificationKey {
  readonly keyId: string | undefined;
  /** Accepted algorithms: the JWK's `alg`, or all that its type and curve allow. */
  readonly algorithms: readonly Algorithm[];
  readonly key: KeyObject;
  /** What one verification costs, in us. */
  readonly costUs: number;
  /** The tenant that tokens must name, where the key set says whose tokens the key may sign. */
  readonly tenant: string | undefined;
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
  jwk: JsonObject,
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
  const algorithms = (readAlgorithms([jwk['alg']]) ?? ALGORITHMS).filter((algorithm) => isCompatible(key, algorithm));
  if (algorithms.length === 0) return 'its type or curve does not fit any accepted algorithm';
  const keyId = jwk['kid'] as string | undefined;
  return { keyId, algorithms, key, costUs: verificationCostUs(key), tenant: undefined };
}

/** Reads a JWK that may verify signatures (RFC 7518 section 6); says why where it must not, or is broken, for example a point off its curve. */
export function importKey(jwk: unknown, maxModulusBits = MAX_MODULUS_BITS): VerificationKey | string {
  const why = unsuitable(jwk);
  if (why !== undefined || !isObject(jwk)) return why ?? '';
  const key = attempt(() => createPublicKey(ownMembers({ key: jwk, format: 'jwk' as const })));
  return key ? toVerificationKey(jwk, key, maxModulusBits) : 'its key material is broken';
}

/** Where the keys of one issuer come from. */
export interface KeySource {
  /**
   * Finds the key that a header names; synchronously when the keys are cached.
   *
   * @param checkToken - called where the key is unknown, before anything else is done about it; returns the `iat` of the
   * token, throws where the token is refused whatever its key is
   * @throws AuthError `unknown_key`, `unusable_key`, `algorithm_not_allowed`, `too_many_unknown_keys` when the issuer has
   * been asked too often, or `keys_unavailable` when the key set is not available.
   */
  find(header: UnverifiedHeader, checkToken: () => number): VerificationKey | Promise<VerificationKey>;
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
      const privateDetail = `the key set has several keys with its kid for ${algorithm}`;
      throw new AuthError('unusable_key', { privateDetail });
    }
    return fitting.length === 1 ? fitting[0] : undefined;
  }
}

/** The refusal of a token whose key is in no key set of its issuer. */
export function unknownKey({ keyId, algorithm }: UnverifiedHeader): AuthError {
  const privateDetail =
    keyId === undefined
      ? `the token has no kid, and none or several keys of the set are for ${algorithm}: have the issuer name the key`
      : `the key set has no key with the kid ${describe(keyId)}: it may be that of another realm or stage (jwksUri)`;
  return new AuthError('unknown_key', { privateDetail });
}

/** A JSON Web Key Set (RFC 7517 section 5), or just its keys. */
export type Jwks = { readonly keys: readonly object[] } | readonly object[];

/**
 * Keys that are given, not fetched: for tests and for issuers whose keys are distributed by other means. When the list
 * of a key set is replaced by another one, that one counts from the next request on.
 *
 * @param canBeEmpty - whether no key at all is accepted: then every signed token is refused as `unknown_key`
 * @throws TypeError naming each key that cannot be used: the app chose these keys, so none is ignored silently.
 */
export function staticKeys(jwks: Jwks, canBeEmpty = false): KeySource {
  /** The one that was read last, with its keys, or why it cannot be used. */
  let list: unknown;
  let keys: KeySet | undefined;
  let failure: unknown;
  let known = new Map<string, VerificationKey>();

  /** The keys of the latest list; `undefined` where that cannot be used. */
  function current(): KeySet | undefined {
    try {
      // Not `'keys' in jwks`: every array has a method of that name.
      const latest = Array.isArray(jwks) ? jwks : (jwks as { readonly keys: readonly object[] }).keys;
      if (latest === list && (keys || failure)) return keys;
      list = latest;
      keys = undefined;
      const named = readKeys(latest, canBeEmpty).map(([name, key]) => [name, known.get(name) ?? key] as const);
      known = new Map(named);
      keys = new KeySet(named.map(([, key]) => key));
      return keys;
    } catch (error) {
      failure = error;
      return undefined;
    }
  }

  if (!current()) throw failure;
  return {
    find(header, checkToken) {
      const keySet = current();
      if (!keySet) throw failure;
      const key = keySet.find(header);
      if (key) return key;
      if (keySet.size === 0) throw NO_KEYS;
      checkToken();
      throw unknownKey(header);
    },
    // These two are called in timers too, where a list that was replaced by a broken one must not throw.
    has: (key) => current()?.has(key) === true,
    ready: () => Promise.resolve(),
    status() {
      const usable = current();
      if (usable) return { state: 'fresh', keys: usable.size };
      return { state: 'unavailable', keys: 0, lastError: 'the given keys cannot be used' };
    },
    close() {},
  };
}

/** Refuses every JWT, whatever its claims are. */
const NO_KEYS = new AuthError('unknown_key', {
  privateDetail: 'the token is a JWT, and only opaque tokens are accepted (keys: [], TILLGATE_KEYS=none)',
});

/** The keys with their texts: the same key stays the same object, also in another array. */
function readKeys(list: unknown, canBeEmpty: boolean): (readonly [string, VerificationKey])[] {
  if (!Array.isArray(list) || (list.length === 0 && !canBeEmpty)) {
    throw new TypeError('authenticate(): option "keys" must be a JSON Web Key Set with at least one key');
  }
  return list.map((jwk: unknown, index) => [JSON.stringify(jwk), readKey(jwk, index)] as const);
}

function readKey(jwk: unknown, index: number): VerificationKey {
  const key = importKey(isObject(jwk) ? ownMembers(jwk) : jwk);
  if (typeof key !== 'string') return key;
  throw new TypeError(`authenticate(): option "keys": key ${index} cannot verify tokens: ${key}`);
}

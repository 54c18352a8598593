import { AuthError } from '../../core/auth-error';
import type { Algorithm } from '../algorithms';
import type { UnverifiedHeader } from '../jws';
import type { VerificationKey } from './jwk';

/** Where the keys of one issuer come from. */
export interface KeySource {
  /**
   * Finds the key that a header asks for; at once when the keys are at hand.
   *
   * @throws AuthError `unknown_key`, `algorithm_not_allowed`, or `keys_unavailable` when that cannot be told.
   */
  find(header: UnverifiedHeader): VerificationKey | Promise<VerificationKey>;
  /** Whether a key found earlier may still be used. */
  has(key: VerificationKey): boolean;
  /** Resolves once there are keys. */
  ready(): Promise<void>;
  status(): KeyStatus;
  close(): void;
}

/** State of a key source, for operators. */
export interface KeyStatus {
  /** `starting`: none yet; `fresh`; `stale`: last-known-good keys serve while the issuer is down; `unavailable`: too old to serve. */
  readonly state: 'starting' | 'fresh' | 'stale' | 'unavailable';
  /** Number of usable keys. */
  readonly keys: number;
  /** Milliseconds since the key set was fetched; absent for static keys. */
  readonly ageMs?: number;
  /** Key set fetches so far. */
  readonly fetches?: number;
  readonly lastError?: string;
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

  has(key: VerificationKey): boolean {
    return this.#all.has(key);
  }

  /**
   * The key for a header, or `undefined` when the set has none of that id. A token without `kid` is only accepted
   * where there is no choice: trying keys in turn would make every key good for every token.
   *
   * @throws AuthError `algorithm_not_allowed` when the key is for another algorithm.
   */
  find({ keyId, algorithm }: UnverifiedHeader): VerificationKey | undefined {
    const candidates = keyId === undefined ? [...this.#all] : this.#byId.get(keyId);
    if (!candidates || candidates.length === 0) return undefined;
    const fitting = candidates.filter((key) => key.algorithms.includes(algorithm));
    if (fitting.length === 0) throw keyForOtherAlgorithm(algorithm);
    return fitting.length === 1 ? fitting[0] : undefined;
  }
}

function keyForOtherAlgorithm(algorithm: Algorithm): AuthError {
  return new AuthError('algorithm_not_allowed', { privateDetail: `the key is not for ${algorithm}` });
}

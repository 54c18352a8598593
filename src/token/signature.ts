import { constants, verify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { AuthError } from '../core/auth-error';
import { ownMembers } from '../core/objects';
import { isList } from '../core/options';

/** The parts of a token that its signature is verified with. */
interface SignedText {
  /** The whole token. */
  readonly raw: string;
  readonly signingInput: string;
  readonly signature: Buffer;
}

/** Says whether a signature over some bytes is good. */
type Verification = (input: Buffer, key: KeyObject, signature: Buffer) => boolean;

/**
 * The signature algorithms that can be accepted (RFC 7518 section 3.1, RFC 8037, RFC 9864): a token cannot select anything
 * else. No HMAC: a key set has public keys only.
 */
const VERIFICATIONS = {
  RS256: rsa('sha256'),
  RS384: rsa('sha384'),
  RS512: rsa('sha512'),
  PS256: rsaPss('sha256'),
  PS384: rsaPss('sha384'),
  PS512: rsaPss('sha512'),
  ES256: ecdsa('sha256'),
  ES384: ecdsa('sha384'),
  ES512: ecdsa('sha512'),
  EdDSA: ed25519,
  Ed25519: ed25519,
} satisfies Record<string, Verification>;

/** One accepted signature algorithm. */
export type Algorithm = keyof typeof VERIFICATIONS;

/** All of them. */
export const ALGORITHMS = Object.keys(VERIFICATIONS) as readonly Algorithm[];

/** RFC 9864 section 2.2: with the only curve that is accepted here, both names mean the same signature. */
const ED25519_NAMES: readonly Algorithm[] = ['EdDSA', 'Ed25519'];

/** All names of the signature that an algorithm makes. */
function namesOf(algorithm: Algorithm): readonly Algorithm[] {
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

/**
 * Verifies the signature with a cached key object (RFC 7515 section 5.2). Times are not looked at here: claims are
 * checked after the signature.
 *
 * @throws AuthError `bad_signature`
 */
export function verifySignature(token: SignedText, key: KeyObject, algorithm: Algorithm): void {
  let isGood: boolean;
  try {
    isGood = VERIFICATIONS[algorithm](Buffer.from(token.signingInput, 'latin1'), key, token.signature);
  } catch (cause) {
    throw new AuthError('bad_signature', { cause });
  }
  if (!isGood) throw new AuthError('bad_signature');
}

/** RFC 8037 section 3.1: Ed25519 hashes by itself. */
function ed25519(input: Buffer, key: KeyObject, signature: Buffer): boolean {
  return verify(null, input, ownMembers({ key }), signature);
}

/** RSASSA-PKCS1-v1_5 (RFC 7518 section 3.3). */
function rsa(hash: string): Verification {
  return (input, key, signature) => verify(hash, input, ownMembers({ key }), signature);
}

/**
 * RSASSA-PSS, the salt as long as the hash (RFC 7518 section 3.5), the signature as long as the modulus (RFC 8017
 * section 8.1.2, step 1). OpenSSL checks that length for PKCS #1 v1.5 only: here it would accept a signature without its
 * leading zero bytes, and so a second spelling of the same token.
 */
function rsaPss(hash: string): Verification {
  const padding = constants.RSA_PKCS1_PSS_PADDING;
  const saltLength = constants.RSA_PSS_SALTLEN_DIGEST;
  return (input, key, signature) =>
    signature.length === modulusBytes(key) && verify(hash, input, ownMembers({ key, padding, saltLength }), signature);
}

/** The length of an RSA key's modulus, in bytes. */
function modulusBytes(key: KeyObject): number {
  return Math.ceil((key.asymmetricKeyDetails?.modulusLength ?? 0) / 8);
}

/** ECDSA, r and s concatenated, not DER (RFC 7518 section 3.4). */
function ecdsa(hash: string): Verification {
  return (input, key, signature) =>
    verify(hash, input, ownMembers({ key, dsaEncoding: 'ieee-p1363' as const }), signature);
}

/** Limits of one turn, so that signatures do not hold the event loop: the rest is verified in the next one. */
const MAX_PER_TURN = 64;
const MAX_TURN_MS = 3;
/** Characters at the end of a token by which it is found: hashing a whole token takes longer than comparing it. */
const ENDING = 32;

interface Waiting {
  readonly token: SignedText;
  readonly ending: string;
  readonly key: KeyObject;
  readonly algorithm: Algorithm;
  readonly resolve: () => void;
  readonly reject: (refusal: AuthError) => void;
}

/**
 * Verifies signatures in the order of their arrival, those of one turn of the event loop one right after the other.
 * Verified each within its own request, OpenSSL and the rest of the request evict each other from the processor's caches.
 */
export class SignatureQueue {
  readonly #waiting: Waiting[] = [];
  readonly #byEnding = new Map<string, Pick<Waiting, 'token' | 'key'> & { readonly verified: Promise<void> }>();
  readonly #defer: (task: () => void) => void;
  readonly #now: () => number;

  /**
   * @param defer - calls `task` after the pending events
   * @param now - monotonic time in ms
   */
  constructor(defer: (task: () => void) => void = setImmediate, now = () => performance.now()) {
    this.#defer = defer;
    this.#now = now;
  }

  /** Verifies a signature once the events that are pending now have been handled. Rejects with an AuthError `bad_signature`. */
  verify(token: SignedText, key: KeyObject, algorithm: Algorithm): Promise<void> {
    const ending = token.raw.slice(-ENDING);
    const same = this.#byEnding.get(ending);
    // The key of an id may have been replaced meanwhile.
    if (same?.key === key && same.token.raw === token.raw) return same.verified;
    const verified = new Promise<void>((resolve, reject) => {
      if (this.#waiting.length === 0) this.#defer(() => this.#runTurn());
      this.#waiting.push({ token, ending, key, algorithm, resolve, reject });
    });
    this.#byEnding.set(ending, { token, key, verified });
    return verified;
  }

  #runTurn(): void {
    const endMs = this.#now() + MAX_TURN_MS;
    let count = 0;
    for (const { token, ending, key, algorithm, resolve, reject } of this.#waiting) {
      this.#byEnding.delete(ending);
      try {
        verifySignature(token, key, algorithm);
        resolve();
      } catch (error) {
        reject(error as AuthError);
      }
      if (++count === MAX_PER_TURN || this.#now() >= endMs) break;
    }
    this.#waiting.splice(0, count);
    if (this.#waiting.length > 0) this.#defer(() => this.#runTurn());
  }
}

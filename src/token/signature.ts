import { constants, sign, verify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { AuthError } from '../core/errors';
import { ownMembers } from '../core/objects';
import { isList } from '../core/options';

/** The parts of a token that its signature is verified with. */
interface SignedText {
  /** The whole token. */
  readonly raw: string;
  readonly signingInput: string;
  readonly signature: Buffer;
}

/** How signatures of an algorithm are made; names as OpenSSL has them. */
interface Scheme {
  readonly keyType: 'rsa' | 'ec' | 'ed25519';
  /** `null`: Ed25519 hashes by itself (RFC 8037 section 3.1). */
  readonly hash: string | null;
  /** RFC 7518 section 3.4: each ECDSA algorithm goes with exactly one curve. */
  readonly curve: string | undefined;
  readonly parameters: object;
}

/** RSASSA-PSS, the salt as long as the hash (RFC 7518 section 3.5). */
const PSS = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };

const ED25519: Scheme = { keyType: 'ed25519', hash: null, curve: undefined, parameters: {} };

/**
 * The signature algorithms that can be accepted (RFC 7518 section 3.1, RFC 8037, RFC 9864): a token cannot select anything
 * else. No HMAC: a key set has public keys only.
 */
const SCHEMES = {
  RS256: rsa('sha256'),
  RS384: rsa('sha384'),
  RS512: rsa('sha512'),
  PS256: rsa('sha256', PSS),
  PS384: rsa('sha384', PSS),
  PS512: rsa('sha512', PSS),
  ES256: ecdsa('sha256', 'prime256v1'),
  ES384: ecdsa('sha384', 'secp384r1'),
  ES512: ecdsa('sha512', 'secp521r1'),
  EdDSA: ED25519,
  // RFC 9864 section 2.2: with the only curve that is accepted here, both names mean the same signature.
  Ed25519: ED25519,
} satisfies Record<string, Scheme>;

/** One accepted signature algorithm. */
export type Algorithm = keyof typeof SCHEMES;

/** All of them. */
export const ALGORITHMS = Object.keys(SCHEMES) as readonly Algorithm[];

function rsa(hash: string, parameters = {}): Scheme {
  return { keyType: 'rsa', hash, curve: undefined, parameters };
}

/** r and s concatenated, not DER (RFC 7518 section 3.4). */
function ecdsa(hash: string, curve: string): Scheme {
  return { keyType: 'ec', hash, curve, parameters: { dsaEncoding: 'ieee-p1363' } };
}

/**
 * Reads a list of at least one algorithm, with all names of each; `undefined` for anything else. RFC 8725 section 3.2:
 * any caller can sign an HMAC with a published key.
 */
export function readAlgorithms(value: unknown): readonly Algorithm[] | undefined {
  const known: readonly unknown[] = ALGORITHMS;
  if (!isList(value) || value.length === 0 || !value.every((one) => known.includes(one))) return undefined;
  const named = value as readonly Algorithm[];
  return [...new Set(named.flatMap((one) => ALGORITHMS.filter((other) => SCHEMES[other] === SCHEMES[one])))];
}

/** Whether a key can verify an algorithm at all: its type, its curve, and for RSA-PSS keys the parameters they are bound to. */
export function isCompatible({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject, algorithm: Algorithm): boolean {
  const { keyType, hash, curve, parameters } = SCHEMES[algorithm];
  if (asymmetricKeyType === 'rsa-pss') {
    return parameters === PSS && (asymmetricKeyDetails?.hashAlgorithm ?? hash) === hash;
  }
  return asymmetricKeyType === keyType && (curve === undefined || asymmetricKeyDetails?.namedCurve === curve);
}

/**
 * Verifies the signature with a cached key object (RFC 7515 section 5.2). Times are not looked at here: claims are
 * checked after the signature.
 *
 * @throws AuthError `bad_signature`
 */
export function verifySignature({ signingInput, signature }: SignedText, key: KeyObject, algorithm: Algorithm): void {
  const { hash, parameters } = SCHEMES[algorithm];
  let isGood: boolean;
  try {
    const options = ownMembers({ key, ...parameters });
    isGood =
      (parameters !== PSS || signature.length === modulusBytes(key)) &&
      verify(hash, Buffer.from(signingInput, 'latin1'), options, signature);
  } catch (cause) {
    throw new AuthError('bad_signature', { cause });
  }
  if (!isGood) throw new AuthError('bad_signature');
}

/**
 * The length of an RSA key's modulus, in bytes, which is that of its signatures (RFC 8017 section 8.1.2, step 1). OpenSSL
 * checks it for PKCS #1 v1.5 only: for PSS it would accept a signature without its leading zero bytes, and so a second
 * spelling of the same token.
 */
function modulusBytes(key: KeyObject): number {
  return Math.ceil((key.asymmetricKeyDetails?.modulusLength ?? 0) / 8);
}

/** Signs a text, off the main thread. The error tells nothing of the key. */
export function signText(text: string, key: KeyObject, algorithm: Algorithm): Promise<Buffer> {
  const { hash, parameters } = SCHEMES[algorithm];
  return new Promise((resolve, reject) => {
    sign(hash, Buffer.from(text), ownMembers({ key, ...parameters }), (error, signature) => {
      if (error) reject(new Error('the text could not be signed'));
      else resolve(signature);
    });
  });
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

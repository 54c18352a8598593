import { constants, verify, type KeyObject, type VerifyKeyObjectInput } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { performance } from 'node:perf_hooks';
import * as timers from 'node:timers';
import { promisify } from 'node:util';
import { AuthError } from '../core/errors';
import { isList, ownMembers } from '../core/objects';
import { FairQueue, type Caller } from './fair-queue';

/** The parts of a token that its signature is verified with. */
export interface SignedText {
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

/** Time of one verification on a common server, in us: only the ratios matter. */
const COSTS_US: Readonly<Record<string, number>> = { prime256v1: 100, secp384r1: 700, secp521r1: 1_500, ed25519: 130 };
const RSA_2048_US = 45;
const COMMON_EXPONENT_BITS = 17;

/** What a verification with a key costs: a whole number of us. */
export function verificationCostUs({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject): number {
  const { namedCurve = String(asymmetricKeyType), modulusLength, publicExponent = 0n } = asymmetricKeyDetails;
  if (modulusLength === undefined) return COSTS_US[namedCurve] ?? 1_500;
  // Grows with the square of the modulus and with the length of the exponent.
  const exponentBits = Math.max(COMMON_EXPONENT_BITS, publicExponent.toString(2).length);
  return Math.round(RSA_2048_US * (modulusLength / 2048) ** 2 * (exponentBits / COMMON_EXPONENT_BITS));
}

/**
 * Verifies the signature with a cached key object (RFC 7515 section 5.2), on the event loop. Times are not checked here:
 * claims are checked after the signature.
 *
 * @throws AuthError `bad_signature`
 */
export function verifySignature(token: SignedText, key: KeyObject, algorithm: Algorithm): void {
  try {
    if (verify(...argumentsOf(token, key, algorithm))) return;
  } catch (cause) {
    throw new AuthError('bad_signature', { cause });
  }
  throw new AuthError('bad_signature');
}

/** The same in libuv's thread pool. Rejects with an AuthError `bad_signature`. */
export async function verifySignatureInPool(token: SignedText, key: KeyObject, algorithm: Algorithm): Promise<void> {
  try {
    if (await verifyInPool(...argumentsOf(token, key, algorithm))) return;
  } catch (cause) {
    throw new AuthError('bad_signature', { cause });
  }
  throw new AuthError('bad_signature');
}

const verifyInPool = promisify(verify) as (...given: VerifyArguments) => Promise<boolean>;

type VerifyArguments = [hash: string | null, data: Buffer, key: VerifyKeyObjectInput, signature: Buffer];

function argumentsOf({ signingInput, signature }: SignedText, key: KeyObject, algorithm: Algorithm): VerifyArguments {
  const { hash, parameters } = SCHEMES[algorithm];
  // RFC 8017 section 8.1.2, step 1. OpenSSL checks it for PKCS #1 v1.5 only: for PSS it would accept a signature without its leading
  // zero bytes, and so a second spelling of the same token.
  if (parameters === PSS && signature.length !== Math.ceil((key.asymmetricKeyDetails?.modulusLength ?? 0) / 8)) {
    throw new RangeError('the signature is not as long as the modulus');
  }
  return [hash, Buffer.from(signingInput, 'latin1'), ownMembers({ key, ...parameters }), signature];
}

/**
 * A signature that costs more is verified in libuv's thread pool. Handing one over costs up to as much as one of P-256: the
 * job, the wake-ups, and responses that are sent one by one (docs/maintainers/performance.md).
 */
const MAX_ON_LOOP_US = 200;

/** Limits of one turn, so that signatures do not hold the event loop: the rest is verified in the next one. */
const MAX_PER_TURN = 64;
const MAX_TURN_MS = 3;

/** Threads of the pool that have a processor: libuv starts four. */
const THREADS = Math.min(4, Math.max(1, availableParallelism() - 1));
/**
 * In us: 2 ms for each thread where one unit is alone, so that none is idle until the event loop hands over more, and a
 * quarter of a second that waits.
 */
const LIMITS_US = { running: 4_000 * THREADS, waiting: 250_000 * THREADS };

/** Characters at the end of a token by which it is found: hashing a whole token takes longer than comparing it. */
const KEPT_ENDING = 32;

/** The real timers: an app that fakes them in its tests, before or after it loads this file, still gets verified tokens. */
const { setImmediate: defer } = timers;
const now = performance.now.bind(performance);

/** A key with the time that one verification takes, in us. */
interface CostedKey {
  readonly key: KeyObject;
  readonly costUs: number;
}

/** A signature that is being verified, with the requests that wait for it. */
interface Verification {
  readonly token: SignedText;
  readonly key: CostedKey;
  readonly verified: Promise<CostedKey>;
  /** Those of the requests, in the pool. */
  readonly callers?: Caller[];
}

/**
 * Verifies signatures, each token once while several requests wait for it.
 *
 * Cheap ones are verified on the event loop in the order of their arrival, those of one turn one right after the other:
 * verified each within its own request, OpenSSL and the rest of the request evict each other from the processor's caches.
 * Expensive ones are verified in the thread pool. More of them can arrive than it verifies, and anyone can forge them, so
 * they wait in a fair queue.
 */
export class SignatureVerifier {
  readonly #underWay = new Map<string, Verification>();
  /** Verifies the signatures of the next turn. */
  readonly #turn: (() => void)[] = [];
  readonly #defer: (task: () => void) => void;
  readonly #now: () => number;
  readonly #pool = new FairQueue(LIMITS_US, 'signatures');

  /**
   * @param deferTurn - calls a task after the pending events
   * @param monotonic - time in ms
   */
  constructor(deferTurn: (task: () => void) => void = defer, monotonic = now) {
    this.#defer = deferTurn;
    this.#now = monotonic;
  }

  /**
   * Verifies a signature. Rejects with an AuthError `bad_signature`, or `too_many_unknown_keys` where too many signatures of
   * the same client or site wait.
   *
   * @param caller - whose signature it is; with its `client` where a verified token names it
   * @returns the key
   */
  verify<Key extends CostedKey>(token: SignedText, key: Key, algorithm: Algorithm, caller: Caller = {}): Promise<Key> {
    const ending = token.raw.slice(-KEPT_ENDING);
    const same = this.#underWay.get(ending);
    // The key of an id may have been replaced in the meantime.
    if (same?.key === key && same.token.raw === token.raw) {
      same.callers?.push(caller);
      return same.verified as Promise<Key>;
    }
    const verification =
      key.costUs <= MAX_ON_LOOP_US
        ? this.#verifyInTurn(token, ending, key, algorithm)
        : this.#verifyInPool(token, ending, key, algorithm, caller);
    this.#underWay.set(ending, verification);
    return verification.verified as Promise<Key>;
  }

  #verifyInTurn(token: SignedText, ending: string, key: CostedKey, algorithm: Algorithm): Verification {
    const verified = new Promise<CostedKey>((resolve, reject: (refusal: AuthError) => void) => {
      if (this.#turn.length === 0) this.#defer(() => this.#runTurn());
      this.#turn.push(() => {
        this.#underWay.delete(ending);
        try {
          verifySignature(token, key.key, algorithm);
          resolve(key);
        } catch (error) {
          reject(error as AuthError);
        }
      });
    });
    return { token, key, verified };
  }

  #runTurn(): void {
    const endMs = this.#now() + MAX_TURN_MS;
    let count = 0;
    for (const verifyNext of this.#turn) {
      verifyNext();
      if (++count === MAX_PER_TURN || this.#now() >= endMs) break;
    }
    this.#turn.splice(0, count);
    if (this.#turn.length > 0) this.#defer(() => this.#runTurn());
  }

  #verifyInPool(token: SignedText, ending: string, key: CostedKey, algorithm: Algorithm, caller: Caller): Verification {
    const callers = [caller];
    const verified = this.#pool
      .run(caller, key.costUs, async () => {
        if (callers.every(({ socket }) => socket?.destroyed)) {
          throw new AuthError('too_many_unknown_keys', { privateDetail: 'the client has disconnected' });
        }
        await verifySignatureInPool(token, key.key, algorithm);
        return key;
      })
      .finally(() => this.#underWay.delete(ending));
    return { token, key, verified, callers };
  }
}

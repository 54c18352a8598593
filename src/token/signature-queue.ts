import { availableParallelism } from 'node:os';
import { AuthError } from '../core/errors';
import { FairQueue, networkOf } from './fair-queue';
import type { Caller } from './fair-queue';
import type { VerificationKey } from './keys/key-set';
import { verifySignature, verifySignatureInPool } from './signature';
import type { Algorithm, SignedText } from './signature';

/**
 * A signature that takes longer is verified in libuv's thread pool. Handing one over costs up to as much as one of P-256: the
 * job, the wake-ups, and responses that leave one by one (docs/maintainers/performance.md). So P-256 and Ed25519 stay here on a
 * machine of common speed, also when it is busy.
 */
const MAX_ON_LOOP_US = 200;

/** Limits of one turn, so that signatures do not hold the event loop: the rest is verified in the next one. */
const MAX_PER_TURN = 64;
const MAX_TURN_MS = 3;

/** Processors but that of the event loop. */
const OTHERS = Math.max(1, availableParallelism() - 1);
/**
 * What runs in the pool at the same time, in us: 2 ms for each of them. Less would leave the threads idle until the event loop
 * hands over more; more would take the pool from files and DNS.
 */
const RUNNING_US = 2_000 * OTHERS;
/** What waits for it: a quarter of a second. */
const WAITING_US = 250_000 * OTHERS;

/** Characters at the end of a token by which it is found: hashing a whole token takes longer than comparing it. */
const ENDING = 32;

/** A signature under way, with the requests that wait for it. */
interface Verification {
  readonly token: SignedText;
  readonly key: VerificationKey;
  readonly verified: Promise<void>;
  /** Those of the requests, in the pool. */
  readonly callers?: Caller[];
}

/** A signature of the next turn. */
interface InTurn {
  readonly token: SignedText;
  readonly ending: string;
  readonly key: VerificationKey;
  readonly algorithm: Algorithm;
  readonly resolve: () => void;
  readonly reject: (refusal: AuthError) => void;
}

/**
 * Verifies signatures, each token once while several requests wait for it.
 *
 * Cheap ones are verified on the event loop in the order of their arrival, those of one turn one right after the other:
 * verified each within its own request, OpenSSL and the rest of the request evict each other from the processor's caches.
 * Expensive ones are verified in the thread pool. More of them can arrive than it verifies, and anyone can forge them, so
 * callers take turns there, and too many are turned away with 429.
 */
export class SignatureQueue {
  readonly #underWay = new Map<string, Verification>();
  readonly #turn: InTurn[] = [];
  readonly #defer: (task: () => void) => void;
  readonly #now: () => number;
  readonly #pool: FairQueue;

  /**
   * @param defer - calls `task` after the pending events
   * @param now - monotonic time in ms
   */
  constructor(defer: (task: () => void) => void = setImmediate, now = () => performance.now()) {
    this.#defer = defer;
    this.#now = now;
    this.#pool = new FairQueue({ running: RUNNING_US, waitingFirst: WAITING_US, waiting: WAITING_US }, busy);
  }

  /**
   * Verifies a signature. Rejects with an AuthError `bad_signature`, or `too_many_signatures` where it should have waited for
   * others and could not.
   *
   * @param holder - names a caller whose token was accepted: it goes before those whose token is not known yet, and takes
   *   turns with other holders
   */
  verify(
    token: SignedText,
    key: VerificationKey,
    algorithm: Algorithm,
    caller: Caller = {},
    holder?: string,
  ): Promise<void> {
    const ending = token.raw.slice(-ENDING);
    const same = this.#underWay.get(ending);
    // The key of an id may have been replaced meanwhile.
    if (same?.key === key && same.token.raw === token.raw) {
      same.callers?.push(caller);
      return same.verified;
    }
    const verification =
      key.costUs <= MAX_ON_LOOP_US
        ? this.#verifyInTurn(token, ending, key, algorithm)
        : this.#verifyInPool(token, key, algorithm, caller, holder);
    this.#underWay.set(ending, verification);
    return verification.verified;
  }

  #verifyInTurn(token: SignedText, ending: string, key: VerificationKey, algorithm: Algorithm): Verification {
    const verified = new Promise<void>((resolve, reject) => {
      if (this.#turn.length === 0) this.#defer(() => this.#runTurn());
      this.#turn.push({ token, ending, key, algorithm, resolve, reject });
    });
    return { token, key, verified };
  }

  #runTurn(): void {
    const endMs = this.#now() + MAX_TURN_MS;
    let count = 0;
    for (const { token, ending, key, algorithm, resolve, reject } of this.#turn) {
      this.#underWay.delete(ending);
      try {
        verifySignature(token, key.key, algorithm);
        resolve();
      } catch (error) {
        reject(error as AuthError);
      }
      if (++count === MAX_PER_TURN || this.#now() >= endMs) break;
    }
    this.#turn.splice(0, count);
    if (this.#turn.length > 0) this.#defer(() => this.#runTurn());
  }

  #verifyInPool(
    token: SignedText,
    key: VerificationKey,
    algorithm: Algorithm,
    caller: Caller,
    holder: string | undefined,
  ): Verification {
    const callers = [caller];
    const place = { share: holder ?? networkOf(caller.address ?? ''), isFirst: holder !== undefined, cost: key.costUs };
    const verified = this.#pool
      .run(place, async () => {
        if (callers.every(({ socket }) => socket?.destroyed)) throw busy('the client has disconnected');
        await verifySignatureInPool(token, key.key, algorithm);
      })
      .finally(() => this.#underWay.delete(token.raw.slice(-ENDING)));
    return { token, key, verified, callers };
  }
}

/** RFC 6585 section 4: an anonymous caller can cause it, so it is no 5xx. */
function busy(privateDetail?: string): AuthError {
  return new AuthError('too_many_signatures', { privateDetail, retryAfterSeconds: 1 });
}

import type { AuthError } from '../core/auth-error';
import type { Algorithm } from './algorithms';
import type { UnverifiedToken } from './jws';
import type { VerificationKey } from './keys/jwk';
import { verifySignature } from './signature';

/**
 * Verifies signatures in the order of their arrival, those of one turn of the event loop one right after the other.
 * Verified each within its own request, OpenSSL and the rest of the request evict each other from the processor's caches.
 */
export interface SignatureQueue {
  /** Verifies a signature once the events that are pending now have been handled. Rejects with an AuthError `bad_signature`. */
  verify(token: UnverifiedToken, key: VerificationKey, algorithm: Algorithm): Promise<void>;
}

/** Dependencies of a queue. */
export interface SignatureQueueOptions {
  /** Calls `task` after the pending events. */
  readonly defer: (task: () => void) => void;
  /** Monotonic time in ms. */
  readonly now: () => number;
}

const SYSTEM: SignatureQueueOptions = { defer: setImmediate, now: performance.now.bind(performance) };

/** Limits of one turn, so that signatures do not hold the event loop: the rest is verified in the next one. */
const MAX_PER_TURN = 64;
const MAX_TURN_MS = 3;
/** Characters at the end of a token by which it is found: hashing a whole token takes longer than comparing it. */
const ENDING = 32;

interface Waiting {
  readonly token: UnverifiedToken;
  readonly ending: string;
  readonly key: VerificationKey;
  readonly algorithm: Algorithm;
  readonly resolve: () => void;
  readonly reject: (refusal: AuthError) => void;
}

/** Makes an empty queue. */
export function signatureQueue({ defer, now } = SYSTEM): SignatureQueue {
  const queue: Waiting[] = [];
  const byEnding = new Map<string, Pick<Waiting, 'token' | 'key'> & { readonly verified: Promise<void> }>();

  function runTurn(): void {
    const endMs = now() + MAX_TURN_MS;
    let count = 0;
    for (const { token, ending, key, algorithm, resolve, reject } of queue) {
      byEnding.delete(ending);
      try {
        verifySignature(token, key.key, algorithm);
        resolve();
      } catch (error) {
        reject(error as AuthError);
      }
      if (++count === MAX_PER_TURN || now() >= endMs) break;
    }
    queue.splice(0, count);
    if (queue.length > 0) defer(runTurn);
  }

  return {
    verify(token, key, algorithm) {
      const ending = token.raw.slice(-ENDING);
      const same = byEnding.get(ending);
      // The key of an id may have been replaced meanwhile.
      if (same?.key === key && same.token.raw === token.raw) return same.verified;
      const verified = new Promise<void>((resolve, reject) => {
        if (queue.length === 0) defer(runTurn);
        queue.push({ token, ending, key, algorithm, resolve, reject });
      });
      byEnding.set(ending, { token, key, verified });
      return verified;
    },
  };
}

import { AuthError } from '../../core/auth-error';

/** Runs a bounded number of calls at a time; the others wait. */
export interface CallQueue {
  /**
   * Runs a call when it is its turn.
   *
   * @param isKnown - goes before those that are not, and is never turned away
   * @throws AuthError `introspection_unavailable` when too many calls wait, or the signal aborts the wait
   */
  run<Value>(call: () => Promise<Value>, signal: AbortSignal, isKnown: boolean): Promise<Value>;
}

const MAX_CALLS = 16;
const MAX_WAITING = 256;

/** Makes an empty queue. */
export function callQueue(): CallQueue {
  const known = new Set<() => void>();
  const unknown = new Set<() => void>();
  let running = 0;

  function turn(signal: AbortSignal, isKnown: boolean): Promise<void> | undefined {
    if (running < MAX_CALLS) {
      running++;
      return undefined;
    }
    const waiting = isKnown ? known : unknown;
    if (!isKnown && unknown.size >= MAX_WAITING) throw busy();
    return new Promise((resolve, reject) => {
      waiting.add(start);
      signal.addEventListener('abort', giveUp);
      function start(): void {
        waiting.delete(start);
        signal.removeEventListener('abort', giveUp);
        running++;
        resolve();
      }
      function giveUp(): void {
        waiting.delete(start);
        reject(busy());
      }
    });
  }

  function next(): void {
    running--;
    const [start] = known.size > 0 ? known : unknown;
    start?.();
  }

  return {
    async run(call, signal, isKnown) {
      await turn(signal, isKnown);
      try {
        return await call();
      } finally {
        next();
      }
    },
  };
}

function busy(): AuthError {
  const privateDetail = 'too many tokens wait for the introspection endpoint';
  return new AuthError('introspection_unavailable', { privateDetail, retryAfterSeconds: 1 });
}

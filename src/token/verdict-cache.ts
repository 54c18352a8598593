import { LRUCache } from 'lru-cache';
import type { UnverifiedToken } from './jws';

/** Remembers verdicts on tokens by the whole token, a bounded number of them. */
export interface VerdictCache<Verdict> {
  get(token: string): Verdict | undefined;
  /** Remembers the verdict on a token that comes for the second time; of the first time only a trace is kept. */
  set(token: UnverifiedToken, verdict: Verdict): void;
  delete(token: string): void;
}

/** Traces of first times: a power of two, 256 KB. */
const TRACES = 65_536;
/** Characters at the end of a token, all of its signature, by which it is found: 192 bits. */
const ENDING = 32;

interface Entry<Verdict> {
  readonly token: string;
  readonly verdict: Verdict;
}

/**
 * Makes the cache. A token that comes once is never looked up again, so remembering it costs memory and the garbage
 * collector's time for nothing, and pushes out one that does come again: a caller with a new token for each request
 * empties the cache for nobody else.
 *
 * @param max - verdicts to remember, at least 1
 */
export function verdictCache<Verdict extends object>(max: number): VerdictCache<Verdict> {
  // By their endings: each request brings its token as a new text, and to hash all of that takes longer than to compare it.
  const entries = new LRUCache<string, Entry<Verdict>>({ max });
  // A lost or a colliding trace costs one verification more, or one entry too early: never a wrong verdict.
  const traces = new Uint32Array(TRACES);

  /** The signature has been verified: its first bytes are as good as random, and nobody can choose them. */
  function cameBefore({ signature }: UnverifiedToken): boolean {
    const slot = signature.readUInt32BE(0) % TRACES;
    const trace = signature.readUInt32BE(4);
    if (traces[slot] === trace) return true;
    traces[slot] = trace;
    return false;
  }

  return {
    get(token) {
      const entry = entries.get(token.slice(-ENDING));
      return entry?.token === token ? entry.verdict : undefined;
    },
    set(token, verdict) {
      if (cameBefore(token)) entries.set(token.raw.slice(-ENDING), { token: token.raw, verdict });
    },
    delete: (token) => void entries.delete(token.slice(-ENDING)),
  };
}

import { LRUCache } from 'lru-cache';
import type { UnverifiedToken } from './jws';

/** Values by token, a bounded number of them; the whole token is compared. */
export interface TokenCache<Value> {
  get(token: string): Value | undefined;
  /** Keeps the value of a token that is set for the second time; the first time leaves a trace only. */
  set(token: UnverifiedToken, value: Value): void;
  delete(token: string): void;
}

/** Traces of first uses: a power of two, 256 KB. */
const TRACES = 65_536;
/** Characters at the end of a token, all of its signature, by which it is found: 192 bits. */
const ENDING = 32;

interface Entry<Value> {
  readonly token: string;
  readonly value: Value;
}

/**
 * Makes a least-recently-used cache. Caching a token that is used once would evict one that is used again, so a caller
 * with a new token for each request evicts no other caller's.
 *
 * @param max - entries, at least 1
 */
export function tokenCache<Value extends object>(max: number): TokenCache<Value> {
  // Keyed by their endings: hashing a whole token takes longer than comparing it.
  const entries = new LRUCache<string, Entry<Value>>({ max });
  // A lost trace costs one more verification, a colliding one caches one use too early: neither returns a wrong value.
  const traces = new Uint32Array(TRACES);

  /** The signature has been verified: a caller cannot choose its first bytes. */
  function isSecondUse({ signature }: UnverifiedToken): boolean {
    const slot = signature.readUInt32BE(0) % TRACES;
    const trace = signature.readUInt32BE(4);
    if (traces[slot] === trace) return true;
    traces[slot] = trace;
    return false;
  }

  return {
    get(token) {
      const entry = entries.get(token.slice(-ENDING));
      return entry?.token === token ? entry.value : undefined;
    },
    set(token, value) {
      if (isSecondUse(token)) entries.set(token.raw.slice(-ENDING), { token: token.raw, value });
    },
    delete: (token) => void entries.delete(token.slice(-ENDING)),
  };
}

import { LRUCache } from 'lru-cache';
import { NO_OPTIONS } from '../core/objects';
import type { UnverifiedToken } from '../token/jws';

/** Traces of first uses, two at each place: 256 KB. */
const TRACES = 65_536;
/** Characters at the end of a token, all of its signature, by which it is found: 192 bits. */
const ENDING = 32;

/**
 * Values by token, the least recently used ones leave first; the whole token is compared. Caching a token that is used once
 * would evict one that is used again, so a caller with a new token for each request evicts no other caller's.
 */
export class TokenCache<Value extends object> {
  // Keyed by their endings: hashing a whole token takes longer than comparing it.
  readonly #entries: LRUCache<string, { readonly token: string; readonly value: Value }>;
  // A lost trace costs one more verification, a colliding one caches one use too early: neither returns a wrong value.
  readonly #traces = new Uint32Array(TRACES);

  /** @param max - entries, at least 1 */
  constructor(max: number) {
    this.#entries = new LRUCache({ max });
  }

  get(token: string): Value | undefined {
    const entry = this.#entries.get(token.slice(-ENDING), NO_OPTIONS);
    return entry?.token === token ? entry.value : undefined;
  }

  /** Keeps the value of a token that is set for the second time; the first time leaves a trace only. */
  set({ raw, signature }: UnverifiedToken, value: Value): void {
    // The signature has been verified: a caller cannot choose its first bytes.
    const at = (signature.readUInt32BE(0) % TRACES) & ~1;
    const trace = signature.readUInt32BE(4);
    if (this.#traces[at] === trace || this.#traces[at + 1] === trace) {
      this.#entries.set(raw.slice(-ENDING), { token: raw, value }, NO_OPTIONS);
      return;
    }
    // Two tokens whose traces are at one place, and that are used by turns, are both cached.
    this.#traces[at + 1] = this.#traces[at]!;
    this.#traces[at] = trace;
  }

  delete(token: string): void {
    this.#entries.delete(token.slice(-ENDING));
  }
}

import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/clock';

/** What is known about key ids that are in no key set. */
export interface UnknownKeys {
  /** Whether the issuer was asked about this id a moment ago and did not have it. */
  has(keyId: string): boolean;
  /** The issuer has no key of this id. */
  add(keyId: string): void;
  /** Whether the issuer may be asked once more on behalf of an unknown id; `true` counts as one fetch. */
  takeFetch(): boolean;
}

/** Unknown key ids may cause this many fetches per window: enough for two rotations, too few to be a flood. */
const FETCHES = 2;
/** Also how long an id stays unknown: an issuer may sign with a new key moments before all its servers publish it. */
const WINDOW_MS = 30_000;
/** An id has 1,024 characters at most: a flood of them fills two megabytes, not more. */
const REMEMBERED = 1_000;

/** Bounds what tokens with made-up key ids can cost: fetches and memory. */
export function unknownKeys(clock: Clock): UnknownKeys {
  const askedAt = new LRUCache<string, number>({ max: REMEMBERED });
  let fetchedAt: number[] = [];

  /** A clock that stepped back makes a moment lie in the future: then it is over. */
  function isRecent(at: number): boolean {
    const age = clock() - at;
    return age >= 0 && age < WINDOW_MS;
  }

  return {
    has: (keyId) => isRecent(askedAt.get(keyId) ?? -Infinity),
    add: (keyId) => void askedAt.set(keyId, clock()),
    takeFetch() {
      fetchedAt = fetchedAt.filter(isRecent);
      if (fetchedAt.length >= FETCHES) return false;
      fetchedAt.push(clock());
      return true;
    },
  };
}

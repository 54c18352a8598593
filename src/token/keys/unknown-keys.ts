import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/clock';
import { NO_OPTIONS } from '../../core/objects';

/** Bounds what tokens with unknown key ids can cost: fetches and memory. */
export interface UnknownKeys {
  /** Whether the issuer was asked about this id within the last 30 s and did not have it. */
  has(keyId: string): boolean;
  /** Remembers that the issuer has no key of this id. */
  add(keyId: string): void;
  /** Whether the issuer may be asked on behalf of an unknown id now; `true` counts as one fetch. */
  takeFetch(): boolean;
  /** Time in ms until `takeFetch()` allows one; 0: now. */
  waitMs(): number;
}

/** Fetches that are allowed immediately: enough for two rotations, too few for a flood. */
const BURST = 2;
/** A further fetch is allowed each time this has passed, so a rotation is seen within it also during a flood. */
const REFILL_MS = 5_000;
/** How long an id stays unknown: an issuer may sign with a new key moments before all its servers publish it. */
const REMEMBERED_MS = 30_000;
/** An id has 1,024 characters at most, so this is 2 MB at most. */
const MAX_REMEMBERED = 1_000;

export function unknownKeys(clock: Clock): UnknownKeys {
  const askedAt = new LRUCache<string, number>({ max: MAX_REMEMBERED });
  /** When all fetches of the burst are available again. */
  let fullAt = -Infinity;

  function waitMs(): number {
    // Bounded because the clock may have stepped back.
    fullAt = Math.min(fullAt, clock() + BURST * REFILL_MS);
    return Math.max(0, fullAt - clock() - (BURST - 1) * REFILL_MS);
  }

  return {
    has(keyId) {
      const ageMs = clock() - (askedAt.get(keyId, NO_OPTIONS) ?? -Infinity);
      // Negative after the clock has stepped back.
      return ageMs >= 0 && ageMs < REMEMBERED_MS;
    },
    add: (keyId) => void askedAt.set(keyId, clock(), NO_OPTIONS),
    takeFetch() {
      if (waitMs() > 0) return false;
      fullAt = Math.max(fullAt, clock()) + REFILL_MS;
      return true;
    },
    waitMs,
  };
}

import { option } from '../core/options';

/** How far apart the clocks of an issuer's machines may be: by so much a token can outlive its floor. */
const ISSUER_CLOCK_SKEW_MS = 60_000;

/** The row of `maxTokenAgeSeconds`. */
export const TOKEN_AGE_OPTION = option.number({ unit: 'seconds', min: 1, integer: true }, 86_400);

/** How long a log keeps changes, in ms: an hour longer than tokens live, because clocks of publishers, issuers and readers may differ. */
export function keptMsOf(maxTokenAgeSeconds: number): number {
  return maxTokenAgeSeconds * 1000 + 3_600_000;
}

/**
 * The lowest generation still accepted per client id, for one issuer. Floors merge by max, so order, repetition and
 * duplicates never matter. A floor is kept for between one and two lifetimes: by then the last token that it discards
 * has expired.
 *
 * Meant for up to 200,000 changed clients: a map takes some 100 bytes for each.
 */
export class Floors {
  /** How long a floor is needed, in ms. */
  readonly lifetimeMs: number;
  /** By client id. Two maps take turns, so that nothing has to be searched for what has expired. */
  #current = new Map<string, number>();
  #previous: ReadonlyMap<string, number> | undefined;
  #turnedMs: number | undefined;
  /** Called with the client whose floor has risen. */
  onRaise: ((clientId: string) => void) | undefined;

  /**
   * @param limits - `maxTokenAgeMs`: longest `exp - iat` that verification accepts; `skewMs`: how long after its `exp` a
   * token is still accepted
   */
  constructor({ maxTokenAgeMs, skewMs }: { readonly maxTokenAgeMs: number; readonly skewMs: number }) {
    this.lifetimeMs = maxTokenAgeMs + skewMs + ISSUER_CLOCK_SKEW_MS;
  }

  /** Floors in memory; one that has risen since the last turn may count twice. */
  get size(): number {
    return this.#current.size + (this.#previous?.size ?? 0);
  }

  get(clientId: string): number | undefined {
    const current = this.#current.get(clientId) ?? -1;
    const previous = this.#previous?.get(clientId) ?? -1;
    const floor = Math.max(current, previous);
    return floor < 0 ? undefined : floor;
  }

  /** Raises the floor of one client. */
  raise(clientId: string, generation: number): void {
    if (generation <= (this.get(clientId) ?? -1)) return;
    this.#current.set(clientId, generation);
    this.onRaise?.(clientId);
  }

  /**
   * Forgets floors that are older than a lifetime; to be called now and then. One call drops one map at most, so a clock
   * that leaps ahead drops nothing that was raised since the last turn.
   */
  turn(nowMs: number): void {
    // A clock that steps back keeps floors longer.
    this.#turnedMs = Math.min(this.#turnedMs ?? nowMs, nowMs);
    if (nowMs - this.#turnedMs < this.lifetimeMs) return;
    this.#turnedMs = nowMs;
    this.#previous = this.#current;
    this.#current = new Map();
  }
}

import { option } from '../core/options';
import { FloorTable } from './floor-table';
import { ALL_CLIENTS } from './log';

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
 */
export class Floors {
  /** How long a floor is needed, in ms. */
  readonly lifetimeMs: number;
  /** Two tables take turns, so that nothing has to be searched for what has expired. */
  #current = new FloorTable();
  #previous: FloorTable | undefined;
  #turnedMs: number | undefined;
  #all = -1;
  /** Called with the client whose floor has risen; with `undefined` when it was that of all clients. */
  onRaise: ((clientId: string | undefined) => void) | undefined;

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
    const floor = Math.max(current, previous, this.#all);
    return floor < 0 ? undefined : floor;
  }

  /** Raises the floor of one client. */
  raise(clientId: string, generation: number): void {
    if (generation <= (this.get(clientId) ?? -1)) return;
    this.#current.raise(clientId, generation);
    this.onRaise?.(clientId);
  }

  /** Applies a change of a log, which may concern all clients; a token never does. */
  apply(clientId: string, generation: number): void {
    if (clientId !== ALL_CLIENTS) return this.raise(clientId, generation);
    this.#all = Math.max(this.#all, generation);
    this.onRaise?.(undefined);
  }

  /**
   * Forgets floors that are older than a lifetime; to be called now and then. One call drops one table at most, so a clock
   * that leaps ahead drops nothing that was raised since the last turn.
   */
  turn(nowMs: number): void {
    // A clock that steps back keeps floors longer.
    this.#turnedMs = Math.min(this.#turnedMs ?? nowMs, nowMs);
    if (nowMs - this.#turnedMs < this.lifetimeMs) return;
    this.#turnedMs = nowMs;
    this.#previous = this.#current;
    this.#current = new FloorTable();
  }
}

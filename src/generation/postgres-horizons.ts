/** A read that was answered: its time, and the oldest transaction that was still under way at its snapshot. */
interface Answered {
  readonly nowMs: number;
  readonly horizon: bigint;
}

/** No transaction is older than this one: everything is asked for. */
export const EVERYTHING = 0n;

const LONGEST = 1_024;

/**
 * Remembers which transactions the answers of one source have covered. Transactions get their number before they write
 * and may commit in any order, so the time of a change does not say whether an earlier read has seen it. The horizon
 * does: what a snapshot could not see has been, or will be, written by its oldest open transaction or a later one.
 */
export class Horizons {
  #answered: readonly Answered[] = [];
  #forgottenMs = 0;

  /** Notes a read; those of one second become one, of which the later time and the older transaction count. */
  note(nowMs: number, horizon: bigint): void {
    const last = this.#answered.at(-1);
    if (!last || secondOf(last.nowMs) !== secondOf(nowMs)) {
      this.#answered = [...this.#answered, { nowMs, horizon }];
    } else {
      const merged = { nowMs: Math.max(last.nowMs, nowMs), horizon: older(last.horizon, horizon) };
      this.#answered = [...this.#answered.slice(0, -1), merged];
    }
    if (this.#answered.length > LONGEST) this.#forgetFirst();
  }

  /**
   * The transaction from which on everything must be read again by somebody whose knowledge reaches to `sinceMs` or
   * later: `EVERYTHING` when that is before what is remembered, or after it.
   */
  from(sinceMs: number): bigint {
    if (sinceMs <= this.#forgottenMs) return EVERYTHING;
    const candidates = this.#answered.filter(({ nowMs }) => nowMs >= sinceMs).map(({ horizon }) => horizon);
    return candidates.length === 0 ? EVERYTHING : candidates.reduce(older);
  }

  /** Forgets all: the transactions of another history say nothing about this one. */
  clear(): void {
    this.#answered = [];
  }

  #forgetFirst(): void {
    const [first, ...rest] = this.#answered;
    this.#answered = rest;
    this.#forgottenMs = Math.max(this.#forgottenMs, first?.nowMs ?? 0);
  }
}

function older(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function secondOf(ms: number): number {
  return Math.floor(ms / 1000);
}

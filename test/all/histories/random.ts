/** Numbers that are the same for the same seed. */
export interface Random {
  /** At least 0, less than 1. */
  next(): number;
  /** An integer, both ends included. */
  between(lowest: number, highest: number): number;
  pick<Value>(values: readonly Value[]): Value;
}

/** mulberry32: 32 bits of state, which is enough for a plan of faults. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  return {
    next,
    between: (lowest, highest) => lowest + Math.floor(next() * (highest - lowest + 1)),
    pick: (values) => values[Math.floor(next() * values.length)] as (typeof values)[number],
  };
}

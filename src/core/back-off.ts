/** Bounds of an exponential back-off, in ms. */
export interface BackOffBounds {
  readonly firstMs: number;
  readonly longestMs: number;
}

/**
 * Pause in ms before the next attempt after `failures` in a row (1 or more): doubled each time up to the longest, then
 * cut by up to a half at random, so that a fleet does not come back in step.
 */
export function backOffMs(failures: number, { firstMs, longestMs }: BackOffBounds, random: () => number): number {
  const exponentialMs = Math.min(longestMs, firstMs * 2 ** (failures - 1));
  return exponentialMs * (1 - random() / 2);
}

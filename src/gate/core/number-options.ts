const DAY_MS = 86_400_000;

/** Numbers that are both options of `authenticate()` and variables: their units, bounds and defaults. */
export const NUMBER_OPTIONS = {
  maxStalenessMs: { unit: 'milliseconds', min: 1, max: DAY_MS, fallback: 60_000 },
  maxSilenceMs: { unit: 'milliseconds', min: 1, max: DAY_MS, fallback: 900_000 },
  keysMaxAgeMs: { unit: 'milliseconds', min: 1_000, max: DAY_MS, fallback: 600_000 },
  keysStaleMs: { unit: 'milliseconds', min: 0, max: 7 * DAY_MS, fallback: 3_600_000 },
  clockToleranceSeconds: { unit: 'seconds', min: 0, max: 300, fallback: 10 },
  maxTokenAgeSeconds: { unit: 'seconds', min: 1, max: 366 * 86_400, fallback: 86_400 },
} as const;

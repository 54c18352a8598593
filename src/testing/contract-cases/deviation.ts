import { AssertionError } from 'node:assert';

/** Something about an answer that is not as it has to be. */
export interface Deviation {
  readonly what: string;
  readonly got: unknown;
  readonly expected: unknown;
}

/**
 * Refuses an answer with deviations.
 *
 * @throws AssertionError (node:assert) that lists all of them
 */
export function assertNone(name: string, deviations: readonly Deviation[]): void {
  if (deviations.length === 0) return;
  const pick = (side: 'got' | 'expected'): object => Object.fromEntries(deviations.map((one) => [one.what, one[side]]));
  const lines = deviations.map(({ what, got, expected }) => `${what}: expected ${show(expected)}, got ${show(got)}`);
  throw new AssertionError({
    message: [name, ...lines].join('\n  '),
    actual: pick('got'),
    expected: pick('expected'),
    operator: 'equal',
  });
}

function show(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'none');
}

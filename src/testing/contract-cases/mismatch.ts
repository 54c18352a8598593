import { AssertionError } from 'node:assert';

/** One way in which a response differs from what is required of it. */
export interface Mismatch {
  readonly what: string;
  readonly got: unknown;
  readonly expected: unknown;
}

/**
 * Fails a case that has found mismatches.
 *
 * @throws AssertionError (node:assert) that lists all of them
 */
export function assertNoMismatch(name: string, mismatches: readonly Mismatch[]): void {
  if (mismatches.length === 0) return;
  const pick = (side: 'got' | 'expected'): object => Object.fromEntries(mismatches.map((one) => [one.what, one[side]]));
  const lines = mismatches.map(({ what, got, expected }) => `${what}: expected ${show(expected)}, got ${show(got)}`);
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

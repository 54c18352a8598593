/**
 * The configuration cannot be used. Carries every problem, so that one start is enough to fix them all.
 * No problem text holds a secret.
 *
 * @example
 * ```ts
 * import { ConfigurationError } from 'tillgate';
 * import { readSettings } from 'tillgate/env';
 *
 * try {
 *   readSettings(process.env);
 * } catch (error) {
 *   if (error instanceof ConfigurationError) error.problems.forEach((problem) => console.error(problem));
 * }
 * ```
 */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  /** One sentence each: the variable, what was got, what is expected, how to fix it. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`wrong configuration:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.problems = Object.freeze([...problems]);
  }
}

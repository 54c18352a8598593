import { ConfigurationError } from '../../src/core/errors';
import { readSettings } from '../../src/settings/settings';
import type { Environment } from '../../src/settings/settings';

/** What `readSettings()` finds wrong with some variables. */
export function problemsOf(env: Environment): readonly string[] {
  try {
    readSettings(env);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
  return [];
}

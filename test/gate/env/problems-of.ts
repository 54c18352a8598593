import { ConfigurationError } from '../../../src/gate/core/configuration-error';
import { readSettings } from '../../../src/gate/env';
import type { Environment } from '../../../src/gate/env';

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

import { join } from 'node:path';

/** Where `test/all/setup/run-folder.cjs` puts what it compiles: `src`, and the scripts of child processes. */
export const COMPILED = join(__dirname, '../../../.test-build');

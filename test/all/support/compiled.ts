import { join } from 'node:path';

/** Where `test/all/setup/run-folder.cjs` puts `src` and the scripts of child processes: `src/gate/index.js`. */
export const COMPILED = join(__dirname, '../../../.test-build');

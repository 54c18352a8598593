import { existsSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';

const TEST = join(__dirname, '..');

/** What `npm run test:all` and `npm run mutation` run, and this folder itself. */
const RUN_ELSEWHERE: readonly string[] = ['all', 'mutation', 'together'];

/**
 * Declares all suites of some folders below `test/`. What they import is loaded once for all of them: loading it for each
 * file takes more time than the tests.
 */
export function runTogether(...folders: readonly string[]): void {
  for (const path of folders.flatMap(suitesOf)) {
    // Inside a describe block hooks at the top of a file stay with the tests of that file.
    describe(relative(TEST, path), () => {
      // An import would be outside of the block.
      // eslint-disable-next-line @typescript-eslint/no-require-imports
      require(path);
    });
  }
}

/** Folders below `test/` that have no file of their own here: none is forgotten. */
export function otherFolders(): readonly string[] {
  return readdirSync(TEST, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !RUN_ELSEWHERE.includes(entry.name))
    .map(({ name }) => name)
    .filter((folder) => !existsSync(join(__dirname, `${folder}.test.ts`)));
}

function suitesOf(folder: string): readonly string[] {
  return readdirSync(join(TEST, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join(TEST, folder, name));
}

import { existsSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';

const TEST = join(__dirname, '..');

/** Folders whose suites `npm test` does not run, and this one. */
const EXCLUDED: readonly string[] = ['all', 'together'];

/** Suites that Jest runs as files of their own, because they change what all others share. */
export const ALONE: readonly string[] = ['cli/store-token-age.test.ts', 'hostile/prototype-pollution.test.ts'];

/**
 * Declares the suites of some folders below `test/` in one Jest file. Jest loads every module anew for each file, which
 * takes longer than the tests.
 */
export function runTogether(...folders: readonly string[]): void {
  for (const path of folders.flatMap(suitesOf)) {
    // Inside a describe block the hooks of a suite apply to its own tests only.
    describe(relative(TEST, path), () => {
      // An import would be outside the block.
      // eslint-disable-next-line @typescript-eslint/no-require-imports
      require(path);
    });
  }
}

/** Folders below `test/` that have no file of their own here, so that none is forgotten. */
export function otherFolders(): readonly string[] {
  return readdirSync(TEST, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !EXCLUDED.includes(entry.name))
    .map(({ name }) => name)
    .filter((folder) => !existsSync(join(__dirname, `${folder}.test.ts`)));
}

function suitesOf(folder: string): readonly string[] {
  return readdirSync(join(TEST, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts') && !ALONE.includes(`${folder}/${name}`))
    .map((name) => join(TEST, folder, name));
}

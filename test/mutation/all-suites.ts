import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';

/**
 * The suites of a mutation run in one file, because Jest loads every test file for every mutant. Stryker names the tests
 * that reach the mutant; only the suites of these tests are loaded.
 */
const TEST = join(__dirname, '..');
const { SUITES = '', LEFT_OUT = '' } = process.env;
const leftOut = LEFT_OUT.split(',');

for (const prefix of SUITES.split(',')) {
  const [folder = ''] = prefix.split('/');
  const suites = readdirSync(join(TEST, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => `${folder}/${name}`)
    .filter((name) => name.endsWith('.test.ts') && name.startsWith(prefix))
    .filter((name) => !leftOut.some((start) => name.startsWith(start)));
  for (const suite of suites.filter(reachesMutant)) {
    // Inside a describe block the hooks at the top of a file apply to the tests of that file only.
    describe(relative(TEST, join(TEST, suite)), () => {
      // An import would be outside of the block.
      // eslint-disable-next-line @typescript-eslint/no-require-imports
      require(join(TEST, suite));
    });
  }
}

function reachesMutant(suite: string): boolean {
  const { testNamePattern } = globalThis as { testNamePattern?: string };
  return testNamePattern === undefined || testNamePattern.includes(`(${suite} `);
}

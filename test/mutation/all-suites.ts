import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** All suites of a mutation run in one file, so that they share the modules under test. `runner.mjs` loads some again. */
const TEST = join(__dirname, '..');
const { SUITES = '', LEFT_OUT = '' } = process.env;
const leftOut = LEFT_OUT.split(',');

for (const prefix of SUITES.split(',')) {
  const [folder = ''] = prefix.split('/');
  readdirSync(join(TEST, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => `${folder}/${name}`)
    .filter((name) => name.endsWith('.test.ts') && name.startsWith(prefix))
    .filter((name) => !leftOut.some((start) => name.startsWith(start)))
    .sort()
    .forEach(loadSuite);
}

function loadSuite(suite: string): void {
  // Inside a describe block the hooks at the top of a file apply to the tests of that file only.
  describe(suite, () => {
    // An import would be outside of the block.
    // eslint-disable-next-line @typescript-eslint/no-require-imports
    require(join(TEST, suite));
  });
}

/** Modules of packages: they are not mutated, and take most of the time to load. */
const kept = new Set<string>();

/** Forgets all modules but those of packages. */
function resetModules(): void {
  for (const path of Object.keys(require.cache)) {
    if (!path.includes('/node_modules/') || kept.has(path)) continue;
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- what is loaded already
    jest.setMock(path, require(path));
    kept.add(path);
  }
  jest.resetModules();
}

Object.assign(globalThis, { loadSuite, resetModules });

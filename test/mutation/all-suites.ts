import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';

/**
 * All suites that say what verification, scopes and generations do, in one file: a mutation run starts Jest once for
 * each of a thousand mutants, and what they import should be loaded once for each of them, not fifty times.
 */
const AREAS = ['core', 'token', 'generation', 'express', 'behaviours'];
/** They say what sources do, which is not mutated, and take their time. */
const SOURCES = /^(postgres|redis|http|sse)/;
const TEST = join(__dirname, '..');
/** Names of suites, separated by commas; without it, all. `token/` are all below that folder. */
const CHOSEN = process.env['SUITES']?.split(',') ?? [''];

for (const path of AREAS.flatMap(suites)) {
  // Inside a describe block hooks at the top of a file stay with the tests of that file.
  describe(relative(TEST, path), () => {
    // An import would be outside of the block.
    // eslint-disable-next-line @typescript-eslint/no-require-imports
    require(path);
  });
}

function suites(area: string): readonly string[] {
  return readdirSync(join(TEST, area), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts') && !SOURCES.test(name))
    .filter((name) => CHOSEN.some((chosen) => `${area}/${name}`.startsWith(chosen)))
    .map((name) => join(TEST, area, name));
}

import { build } from 'esbuild';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Compiled already, or of `npm run test:all`, whose files typescript.cjs compiles one by one where a suite needs one. */
const LEFT_OUT = /[\\/](dist|node_modules|all)[\\/]/;

/** Options of esbuild. Source maps are inline because the coverage takes them from the text of each module. */
export const OPTIONS = {
  ...{ format: 'cjs', platform: 'node', target: 'node20', logLevel: 'error' },
  ...{ sourcemap: 'inline', sourcesContent: false },
};

/** Compiles `src` and `test`, without a check of types, into a new folder: once for all processes of a run. */
export async function compile(rootDir) {
  const outdir = mkdtempSync(join(tmpdir(), 'tillgate-tests-'));
  const entryPoints = ['src', 'test'].flatMap((folder) =>
    readdirSync(join(rootDir, folder), { recursive: true, encoding: 'utf8' })
      .map((name) => join(rootDir, folder, name))
      .filter((name) => /(?<!\.d)\.ts$/.test(name) && !LEFT_OUT.test(name)),
  );
  const remove = () => rmSync(outdir, { recursive: true, force: true });
  // Jest ends the process itself with --bail.
  process.once('exit', remove);
  await build({ ...OPTIONS, entryPoints, outdir, outbase: rootDir, absWorkingDir: rootDir });
  return { outdir, remove };
}

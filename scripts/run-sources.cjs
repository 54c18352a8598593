// Runs the sources of a clone: `node --conditions=source -r ./scripts/run-sources.cjs src/cli/main.ts dev`. esbuild compiles all of src at once,
// in 0.2 s of CPU; tsx, file by file and in a second process, takes 0.9 s with a cold cache and 0.7 s with a warm one.
const { buildSync, transformSync } = require('esbuild');
const { readdirSync, readFileSync } = require('node:fs');
const { join, resolve } = require('node:path');

const SRC = resolve(__dirname, '..', 'src');
/** Compiled by a build, or of another package. */
const BUILT = /[\\/](dist|node_modules)[\\/]/;
const OPTIONS = { format: 'cjs', platform: 'node', target: 'node20', sourcemap: 'inline', logLevel: 'error' };

const sources = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
  (name) => /(?<!\.d)\.ts$/.test(name) && !BUILT.test(name),
);
const entryPoints = sources.map((name) => join(SRC, name));
const { outputFiles } = buildSync({ ...OPTIONS, entryPoints, outdir: SRC, write: false });
const compiled = new Map(outputFiles.map(({ path, text }) => [path.replace(/\.js$/, '.ts'), text]));

process.setSourceMapsEnabled(true);
// A file outside src is compiled when it is loaded.
require.extensions['.ts'] = function runSource(module, file) {
  module._compile(compiled.get(file) ?? compile(file), file);
};

function compile(file) {
  return transformSync(readFileSync(file, 'utf8'), { ...OPTIONS, sourcefile: file, loader: 'ts' }).code;
}

// Puts the scripts of a room into one file: `dist/scripts/all.js`, which Node finds, reads and compiles sooner than fifty. A module in it
// runs when it is first required, as before. Its entries become stubs that all load this one file, because two copies of a module
// would be two WeakMaps. Dependencies stay packages of their own: who audits must see them.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { buildSync } from 'esbuild';

/** As deep as the modules were: the gate names the folder of its package. */
const ALL = join('scripts', 'all.js');

export function intoOneFile(folder, dist) {
  const entries = entriesOf(folder, dist);
  const require = createRequire(join(dist, 'index.js'));
  const stubs = entries.map((entry) => [join(dist, entry), stubOf(entry, Object.keys(require(join(dist, entry))))]);
  const loads = entries.map((entry) => `${JSON.stringify(entry)}: () => require(${JSON.stringify(`./${entry}`)})`);
  const { outputFiles } = buildSync({
    absWorkingDir: dist,
    stdin: { contents: `module.exports = { ${loads.join(', ')} };`, resolveDir: dist, sourcefile: 'entries' },
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    packages: 'external',
    write: false,
    logLevel: 'warning',
  });
  for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' }))
    if (name.endsWith('.js')) rmSync(join(dist, name));
  mkdirSync(join(dist, dirname(ALL)), { recursive: true });
  writeFileSync(join(dist, ALL), outputFiles[0].text);
  for (const [path, text] of stubs) writeFileSync(path, text);
}

/** The scripts that package.json names, from `dist` on. */
function entriesOf(folder, dist) {
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const scripts = Object.values(exports).flatMap((entry) => entry.default ?? []);
  return scripts.map((script) => relative(dist, join(folder, script)).replaceAll('\\', '/'));
}

/** Node's ESM finds the names in `exports.a = `. */
function stubOf(entry, names) {
  const all = relative(dirname(entry), ALL).replaceAll('\\', '/');
  return `"use strict";
${names.map((name) => `exports.${name} = `).join('')}void 0;
const entries = require("${all.startsWith('.') ? all : `./${all}`}");
module.exports = entries["${entry}"]();
`;
}

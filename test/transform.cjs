'use strict';
// Turns TypeScript, and packages that are published as ESM only, into what Jest loads. Types are not looked at here:
// `npm run check` does that, and a file costs a fraction of a millisecond instead of tens of them.
const { createHash } = require('node:crypto');
const { readFileSync } = require('node:fs');
const { transformSync, version } = require('esbuild');

const OPTIONS = {
  format: 'cjs',
  platform: 'node',
  target: 'node20',
  // Tests look at the names of middlewares.
  keepNames: true,
  sourcemap: 'inline',
  // Jest has no loader for an import() unless it is started with a flag: inside it, that is a require().
  supported: { 'dynamic-import': false },
};
const SELF = createHash('sha1').update(readFileSync(__filename)).update(version).digest('hex');

module.exports = {
  getCacheKey: (source, path) => createHash('sha1').update(SELF).update(path).update(source).digest('hex'),
  process: (source, path) => transformSync(source, { ...OPTIONS, sourcefile: path, loader: loaderOf(path) }),
};

function loaderOf(path) {
  return path.endsWith('.ts') ? 'ts' : 'js';
}

'use strict';
// Compiles TypeScript, and packages that are published as ESM only, to CommonJS for Jest. Types are checked by
// `npm run check`; without them a file takes a fraction of a millisecond.
const { createHash } = require('node:crypto');
const { readFileSync } = require('node:fs');
const { transformSync, version } = require('esbuild');

const OPTIONS = {
  format: 'cjs',
  platform: 'node',
  target: 'node20',
  // Tests read the names of middlewares.
  keepNames: true,
  sourcemap: 'inline',
  // Jest has no loader for import() unless it is started with a flag: compile it to require().
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

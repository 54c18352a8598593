'use strict';
// Compiles TypeScript, and packages that are published as ESM only, to CommonJS with esbuild. `npm run check` checks types.
const { createHash } = require('node:crypto');
const { transformSync, version } = require('esbuild');

const OPTIONS = {
  format: 'cjs',
  platform: 'node',
  target: 'node20',
  // Tests read the names of middlewares.
  keepNames: true,
  // A file of its own: inside the code it would be parsed again for every suite.
  sourcemap: 'external',
  // Jest supports import() only behind a flag of Node: compile it to require().
  supported: { 'dynamic-import': false },
};

module.exports = {
  getCacheKey: (source, path) =>
    createHash('sha1')
      .update(version + JSON.stringify(OPTIONS) + path)
      .update(source)
      .digest('hex'),
  process: (source, path) =>
    transformSync(source, { ...OPTIONS, sourcefile: path, loader: path.endsWith('.ts') ? 'ts' : 'js' }),
};

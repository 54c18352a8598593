'use strict';
// A folder that the suites of one run share, for what is made once: see test/all/package/tarball.ts.
const { mkdtempSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const compileSources = require('../../compile-sources.cjs');

module.exports = function makeRunFolder() {
  compileSources();
  // Inherited by the workers.
  process.env['RUN_FOLDER'] = mkdtempSync(join(tmpdir(), 'tillgate-run-'));
};

'use strict';
// Before the first suite: compiles src and the scripts of child processes into .test-build, and makes a folder that the
// suites of one run share (see test/all/package/tarball.ts).
const { copyFileSync, cpSync, mkdirSync, mkdtempSync, readdirSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { basename, join, resolve } = require('node:path');
const { buildSync } = require('esbuild');

const ROOT = resolve(__dirname, '../../..');
const COMPILED = join(ROOT, '.test-build');

module.exports = prepareRun;
// For programs that start the compiled scripts without Jest.
module.exports.compileSources = compileSources;

function prepareRun() {
  compileSources();
  // Inherited by the workers.
  process.env['RUN_FOLDER'] = mkdtempSync(join(tmpdir(), 'tillgate-run-'));
}

function compileSources() {
  mkdirSync(COMPILED, { recursive: true });
  buildSync({
    absWorkingDir: ROOT,
    entryPoints: [
      'src/**/*.ts',
      'test/all/auth-server/*-child.ts',
      'test/all/chaos/*-process.ts',
      'test/all/fuzz/campaign.ts',
    ],
    outbase: '.',
    outdir: COMPILED,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    logLevel: 'warning',
  });
  for (const name of readdirSync(join(ROOT, 'src'), { recursive: true })) {
    if (basename(name) === 'static') cpSync(join(ROOT, 'src', name), join(COMPILED, 'src', name), { recursive: true });
  }
  // src finds them two levels up.
  for (const file of ['package.json', 'openapi.yaml']) copyFileSync(join(ROOT, file), join(COMPILED, file));
}

'use strict';
// Before the first suite: compiles src and the scripts of child processes into .test-build, and makes a folder that the
// suites of one run share (see test/all/package/tarball.ts).
const { execFileSync } = require('node:child_process');
const { copyFileSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { basename, join, resolve } = require('node:path');
const { buildSync } = require('esbuild');

const ROOT = resolve(__dirname, '../../..');
const COMPILED = join(ROOT, '.test-build');

module.exports = prepareRun;
// For programs that start the compiled scripts without Jest.
module.exports.compileSources = compileSources;
module.exports.compileRevision = compileRevision;

function prepareRun() {
  compileSources();
  // Inherited by the workers.
  process.env['RUN_FOLDER'] = mkdtempSync(join(tmpdir(), 'tillgate-run-'));
}

function compileSources() {
  const childProcesses = ['test/all/auth-server/*-child.ts', 'test/all/fuzz/campaign.ts'];
  compile(ROOT, COMPILED, ['src/**/*.ts', CHAOS, ...childProcesses]);
}

/** Scripts of the chaos run, which also runs versions of src beside each other. */
const CHAOS = 'test/all/chaos/*-process.ts';

/** Compiles src of a git revision with the scripts of the chaos run of today, and returns the folder. */
function compileRevision(revision) {
  const sources = join(COMPILED, 'revision', 'sources');
  rmSync(join(COMPILED, 'revision'), { recursive: true, force: true });
  mkdirSync(sources, { recursive: true });
  const archive = execFileSync('git', ['archive', revision, 'src', 'package.json', 'openapi.yaml'], {
    ...{ cwd: ROOT, maxBuffer: 64 * 1024 * 1024 },
  });
  execFileSync('tar', ['-x', '-C', sources], { input: archive });
  cpSync(join(ROOT, 'test/all/chaos'), join(sources, 'test/all/chaos'), { recursive: true });
  compile(sources, join(COMPILED, 'revision'), ['src/**/*.ts', CHAOS]);
  return join(COMPILED, 'revision');
}

function compile(root, outdir, entryPoints) {
  mkdirSync(outdir, { recursive: true });
  buildSync({
    absWorkingDir: root,
    entryPoints,
    outbase: '.',
    outdir,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    logLevel: 'warning',
  });
  for (const name of readdirSync(join(root, 'src'), { recursive: true })) {
    if (basename(name) === 'static') cpSync(join(root, 'src', name), join(outdir, 'src', name), { recursive: true });
  }
  // src finds them two levels up.
  for (const file of ['package.json', 'openapi.yaml']) copyFileSync(join(root, file), join(outdir, file));
}

'use strict';
// Before the first suite: compiles src and the scripts of child processes into .test-build, and makes a folder that the
// suites of one run share (see test/all/package/tarball.ts).
const { execFileSync } = require('node:child_process');
const {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} = require('node:fs');
const { tmpdir } = require('node:os');
const { basename, dirname, join, resolve } = require('node:path');
const { buildSync } = require('esbuild');

const ROOT = resolve(__dirname, '../../..');
const COMPILED = join(ROOT, '.test-build');
const BUILT = /[\\/](dist|node_modules)[\\/]/;

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
  compile(ROOT, COMPILED, [SOURCES, ...CHAOS, ...childProcesses]);
}

const SOURCES = 'src/**/*.ts';

const GATE_INTERNALS = 'test/support/gate-internals.ts';
/** Scripts of the chaos run, which also runs versions of src beside each other. */
const CHAOS = ['test/all/chaos/*-process.ts', 'test/all/chaos/publish-to.ts', GATE_INTERNALS];

/** Compiles src of a git revision with its own scripts of the chaos run, and returns the folder. Packages are those of today. */
function compileRevision(revision) {
  const sources = join(COMPILED, 'revision', 'sources');
  rmSync(join(COMPILED, 'revision'), { recursive: true, force: true });
  mkdirSync(sources, { recursive: true });
  const archive = execFileSync('git', ['archive', revision, 'src', 'openapi.yaml', 'test/all/chaos', GATE_INTERNALS], {
    ...{ cwd: ROOT, maxBuffer: 64 * 1024 * 1024 },
  });
  execFileSync('tar', ['-x', '-C', sources], { input: archive });
  compile(sources, join(COMPILED, 'revision'), [SOURCES, ...CHAOS]);
  return join(COMPILED, 'revision');
}

function compile(root, outdir, entryPoints) {
  mkdirSync(outdir, { recursive: true });
  buildSync({
    absWorkingDir: root,
    entryPoints: entryPoints.flatMap((pattern) => (pattern === SOURCES ? sourcesIn(root) : pattern)),
    outbase: '.',
    outdir,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    logLevel: 'warning',
  });
  for (const name of readdirSync(join(root, 'src'), { recursive: true })) {
    if (basename(name) === 'static' && !BUILT.test(name))
      cpSync(join(root, 'src', name), join(outdir, 'src', name), { recursive: true });
  }
  copyFileSync(join(root, 'openapi.yaml'), join(outdir, 'openapi.yaml'));
  for (const entry of readdirSync(join(root, 'src'), { withFileTypes: true }))
    if (entry.isDirectory()) linkRoom(root, outdir, join('src', entry.name));
}

/** Without what a build has left in the rooms. */
function sourcesIn(root) {
  const names = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.ts') && !BUILT.test(name)).map((name) => join('src', name));
}

/** The compiled rooms find each other by their names, as installed packages do. */
function linkRoom(root, outdir, folder) {
  const manifest = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
  const compiled = (entry) => (entry.source ? entry.source.replace(/\.ts$/, '.js') : entry);
  const entries = Object.entries(manifest.exports ?? {}).map(([name, entry]) => [name, compiled(entry)]);
  const text = JSON.stringify({ ...manifest, main: './index.js', exports: Object.fromEntries(entries) });
  writeFileSync(join(outdir, folder, 'package.json'), text);
  const link = join(outdir, 'node_modules', manifest.name);
  mkdirSync(dirname(link), { recursive: true });
  rmSync(link, { force: true });
  symlinkSync(join(outdir, folder), link, 'dir');
}

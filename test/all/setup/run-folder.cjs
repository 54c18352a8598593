'use strict';
// Before the first suite: compiles src and the scripts of child processes into .test-build, and makes a folder that the
// suites of one run share (see test/all/package/tarball.ts).
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
const { lateList } = require('../../../scripts/late-lists.cjs');
const longSuites = require('./long-suites.json');

const ROOT = resolve(__dirname, '../../..');
const COMPILED = join(ROOT, '.test-build');
const BUILT = /[\\/](dist|node_modules)[\\/]/;

module.exports = prepareRun;
// For programs that start the compiled scripts without Jest.
module.exports.compileSources = compileSources;

function prepareRun() {
  if (process.env['WITHOUT_LONG'])
    for (const [suite, why] of Object.entries(longSuites)) console.log(`left out: test/${suite}: ${why}`);
  compileSources();
  // Inherited by the workers.
  process.env['RUN_FOLDER'] = mkdtempSync(join(tmpdir(), 'tillgate-run-'));
}

function compileSources() {
  mkdirSync(COMPILED, { recursive: true });
  const names = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' });
  // Without what a build has left in the rooms.
  const sources = names.filter((name) => name.endsWith('.ts') && !BUILT.test(name)).map((name) => join('src', name));
  // A chaos run beside another commit starts the scripts of that one too.
  const chaos = ['test/all/chaos/*-process.ts', 'test/all/chaos/publish-to.ts', 'test/support/gate-internals.ts'];
  buildSync({
    absWorkingDir: ROOT,
    entryPoints: [...sources, ...chaos, 'test/all/auth-server/*-child.ts', 'test/all/fuzz/campaign.ts'],
    outbase: '.',
    outdir: COMPILED,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    logLevel: 'warning',
  });
  for (const name of sources) {
    const script = lateList(readFileSync(join(ROOT, name), 'utf8'));
    if (script !== undefined) writeFileSync(join(COMPILED, name.replace(/ts$/, 'js')), script);
  }
  for (const name of names) {
    if (basename(name) === 'static' && !BUILT.test(name))
      cpSync(join(ROOT, 'src', name), join(COMPILED, 'src', name), { recursive: true });
  }
  copyFileSync(join(ROOT, 'openapi.yaml'), join(COMPILED, 'openapi.yaml'));
  for (const entry of readdirSync(join(ROOT, 'src'), { withFileTypes: true }))
    if (entry.isDirectory()) linkRoom(join('src', entry.name));
}

/** The compiled rooms find each other by their names, as installed packages do. */
function linkRoom(folder) {
  const manifest = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'));
  const compiled = (entry) => (entry.source ? entry.source.replace(/\.ts$/, '.js') : entry);
  const entries = Object.entries(manifest.exports ?? {}).map(([name, entry]) => [name, compiled(entry)]);
  const text = JSON.stringify({ ...manifest, main: './index.js', exports: Object.fromEntries(entries) });
  writeFileSync(join(COMPILED, folder, 'package.json'), text);
  const link = join(COMPILED, 'node_modules', manifest.name);
  mkdirSync(dirname(link), { recursive: true });
  rmSync(link, { force: true });
  symlinkSync(join(COMPILED, folder), link, 'dir');
}

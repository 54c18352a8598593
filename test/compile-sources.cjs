'use strict';
// Compiles src, and the scripts that tests run in child processes, before the first test: a child that compiles
// TypeScript itself needs a second for it.
const { copyFileSync, cpSync, mkdirSync, readdirSync } = require('node:fs');
const { basename, join, resolve } = require('node:path');
const { buildSync } = require('esbuild');

const ROOT = resolve(__dirname, '..');
const COMPILED = join(ROOT, '.test-build');

module.exports = function compileSources() {
  mkdirSync(COMPILED, { recursive: true });
  buildSync({
    absWorkingDir: ROOT,
    entryPoints: ['src/**/*.ts', 'test/auth-server/*-child.ts', 'test/hostile/fuzz/campaign.ts'],
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
};

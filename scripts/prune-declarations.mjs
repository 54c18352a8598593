// Removes the declarations of a build that no entry of the package leads to: more than half of them, which no user's
// compiler reads. `node scripts/prune-declarations.mjs [dist]`, after tsc.
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DIST = resolve(process.argv[2] ?? join(ROOT, 'dist'));
const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

const needed = new Set();
for (const { types } of Object.values(exports)) if (types) visit(join(DIST, types.slice('./dist/'.length)));
for (const name of readdirSync(DIST, { recursive: true, encoding: 'utf8' })) {
  const path = join(DIST, name);
  if (name.endsWith('.d.ts') && !needed.has(path)) rmSync(path);
}

/** Follows `from '...'` and `import('...')` of a declaration. */
function visit(path) {
  if (needed.has(path)) return;
  needed.add(path);
  // Examples in comments import too.
  const text = readFileSync(path, 'utf8').replace(/\/\*[^]*?\*\//g, '');
  for (const [, specifier] of text.matchAll(/(?:from|import\(|import)\s*['"](\.[^'"]*)['"]/g)) {
    const target = join(dirname(path), specifier);
    const found = [`${target}.d.ts`, join(target, 'index.d.ts')].find((candidate) => existsSync(candidate));
    if (!found) throw new Error(`${path} imports ${specifier}, which the build lacks`);
    visit(found);
  }
}

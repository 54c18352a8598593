// Compiles the rooms, each into its own dist/: `node scripts/build.mjs`. In the order of src/rooms.json, because the compiler
// reads the declarations of the rooms before.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { lateList } from './late-lists.cjs';
import { intoOneFile } from './one-file.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TSC = createRequire(import.meta.url).resolve('typescript/bin/tsc');
/** A room comes after those that it imports. */
export const ROOMS = JSON.parse(readFileSync(join(ROOT, 'src/rooms.json'), 'utf8'));

if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const { folder } of ROOMS) build(join(ROOT, 'src', folder));

function build(folder) {
  const dist = join(folder, 'dist');
  // A file deleted from the sources does not live on in the package.
  rmSync(dist, { recursive: true, force: true });
  const { status } = spawnSync(process.execPath, [TSC, '-p', join(folder, 'tsconfig.build.json')], {
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? 1);
  copyStatic(folder, dist);
  pruneDeclarations(folder, dist);
  stripComments(dist);
  loadListsLate(folder, dist);
  addModule(folder, dist);
  // It is what a server loads when it starts.
  if (basename(folder) === 'gate') intoOneFile(folder, dist);
}

/** What the compiler leaves out: files that a browser loads, or that a command preloads. */
function copyStatic(folder, dist) {
  for (const name of sourcesOf(folder)) {
    if (basename(name) === 'static') cpSync(join(folder, name), join(dist, name), { recursive: true });
  }
}

function sourcesOf(folder) {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (name) => !/^(dist|node_modules)([\\/]|$)/.test(name),
  );
}

/** Editors show the comments of the declarations; in scripts they are a fifth of the size. */
function stripComments(dist) {
  for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.js') || /(^|[\\/])static[\\/]/.test(name)) continue;
    const path = join(dist, name);
    const compilerOptions = { removeComments: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
    writeFileSync(path, ts.transpileModule(readFileSync(path, 'utf8'), { compilerOptions }).outputText);
  }
}

function loadListsLate(folder, dist) {
  for (const name of sourcesOf(folder).filter((one) => /(?<!\.d)\.ts$/.test(one))) {
    const script = lateList(readFileSync(join(folder, name), 'utf8'));
    if (script !== undefined) writeFileSync(join(dist, name.replace(/ts$/, 'js')), script);
  }
}

/** A second build as an ES module, for a room whose main entry has the condition `import`: docs/decisions/0002-commonjs-only.md. */
function addModule(folder, dist) {
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  if (exports?.['.'].import === undefined) return;
  const compilerOptions = { removeComments: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
  const { outputText } = ts.transpileModule(readFileSync(join(folder, 'index.ts'), 'utf8'), { compilerOptions });
  writeFileSync(join(dist, 'index.mjs'), outputText);
  const declarations = readFileSync(join(dist, 'index.d.ts'), 'utf8');
  writeFileSync(join(dist, 'index.d.mts'), declarations.replaceAll("from './types'", "from './types.js'"));
}

/** Removes the declarations that no entry leads to: more than half of them, which no user's compiler reads. */
function pruneDeclarations(folder, dist) {
  const { exports = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const needed = new Set();
  for (const { types } of Object.values(exports)) if (types) visit(join(folder, types));
  for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
    const path = join(dist, name);
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
}

// Packs the rooms after a build, in the order in which they must be published: `node scripts/pack.mjs <folder>` writes one
// tarball each to that folder. README.md and others are copied from the root of the repository where a room has none of its own.
// Pages for maintainers are left out: users of a package do not need them.
// With --check, publint and attw check the tarballs.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ROOMS } from './build.mjs';
import { toJavaScript } from './javascript.mjs';
import { copyTemplate } from './template.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const out = resolve(process.argv[2] ?? '.packages');
const check = process.argv.includes('--check');
const FOR_MAINTAINERS = new Set([join('docs', 'maintainers'), join('docs', 'decisions')]);

for (const { folder } of ROOMS.filter(({ isPublished }) => isPublished)) {
  const tarball = await pack(folder);
  console.log(tarball);
  if (check) checkTarball(tarball);
}

async function pack(room) {
  const source = join(ROOT, 'src', room);
  const stage = join(out, room);
  rmSync(stage, { recursive: true, force: true });
  mkdirSync(stage, { recursive: true });
  const manifest = published(JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')));
  writeFileSync(join(stage, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
  for (const name of manifest.files) {
    if (name === 'template') {
      copyTemplate(join(stage, name));
      continue;
    }
    if (name === 'template-javascript') {
      await toJavaScript(join(stage, 'template'), join(stage, name));
      continue;
    }
    const from = [join(source, name), join(ROOT, name)].find((path) => existsSync(path));
    if (!from) throw new Error(`src/${room} has no ${name}: run npm run build first`);
    cpSync(from, join(stage, name), { recursive: true, filter: isPacked });
  }
  unlinkMissing(stage);
  const options = ['pack', '--json', '--ignore-scripts', '--pack-destination', out];
  const [{ filename }] = Object.values(JSON.parse(execFileSync('npm', options, { cwd: stage, encoding: 'utf8' })));
  rmSync(stage, { recursive: true });
  return join(out, filename);
}

function isPacked(path) {
  return !FOR_MAINTAINERS.has(relative(ROOT, path)) && !path.endsWith('.png');
}

/** Leaves the text of links to pages and pictures that the package does not have. */
function unlinkMissing(folder) {
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.md')) continue;
    const page = join(folder, name);
    const unlinked = readFileSync(page, 'utf8').replace(
      /!?\[([^\]]*)\]\(([^)#:\s]+\.(?:md|png|svg))(?:#[^)]*)?\)/g,
      (link, text, target) => (existsSync(join(dirname(page), target)) ? link : text),
    );
    writeFileSync(page, unlinked);
  }
}

/**
 * The manifest as it is published: without `source` and `scripts`, because the package does not have their files, and with `main` for tools that
 * do not read `exports`. In the repository it has no `main`, because an import of the folder of a room would load the build.
 */
function published({ exports, scripts: _scripts, ...manifest }) {
  const withoutSource = (entry) => {
    if (typeof entry === 'string') return entry;
    const { source: _, ...rest } = entry;
    return rest;
  };
  const entries = Object.entries(exports).map(([name, entry]) => [name, withoutSource(entry)]);
  const { types, default: main } = exports['.'];
  return { ...manifest, main, types, exports: Object.fromEntries(entries) };
}

function checkTarball(tarball) {
  const tools = [
    ['publint', '--strict', tarball],
    ['attw', tarball, '--profile', 'node16', '--exclude-entrypoints', './package.json'],
  ];
  for (const [name, ...args] of tools)
    execFileSync(join(ROOT, 'node_modules/.bin', name), args, { cwd: ROOT, stdio: 'inherit' });
}

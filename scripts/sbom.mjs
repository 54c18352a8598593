// Writes what comes with each package, without the peers of whoever installs it, as a CycloneDX document:
// `node scripts/sbom.mjs <folder>`. `npm sbom --omit dev` leaves out what a development dependency needs as well, so it is
// asked about a lock file that has nothing else.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { comingWith, lock, packages } from './lock-file.mjs';

const read = (name) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8'));
const out = resolve(process.argv[2] ?? '.packages');
mkdirSync(out, { recursive: true });

const scratch = mkdtempSync(join(tmpdir(), 'tillgate-sbom-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
for (const { folder, isPublished } of read('src/rooms.json')) if (isPublished) writeSbom(folder);

function writeSbom(room) {
  const {
    peerDependencies: _peers,
    peerDependenciesMeta: _meta,
    exports: _exports,
    ...manifest
  } = read(`src/${room}/package.json`);
  const found = [...comingWith(`src/${room}`)];
  // npm names the document after the folder.
  const folder = join(scratch, basename(manifest.name));
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  const all = Object.fromEntries([
    ['', withoutPeers(packages[`src/${room}`])],
    ...found.map((path) => [path, entryOf(path)]),
  ]);
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ ...lock, name: manifest.name, packages: all }));
  const ask = ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx', '--sbom-type', 'library'];
  const document = execFileSync('npm', ask, { cwd: folder, encoding: 'utf8', maxBuffer: 2 ** 26 });
  const { components } = JSON.parse(document);
  if (components.length !== found.length) {
    console.error(
      `${manifest.name}: the document has ${components.length} components, package-lock.json ${found.length}`,
    );
    process.exitCode = 1;
  }
  const file = join(out, `${manifest.name.replace('@', '').replace('/', '-')}.cdx.json`);
  writeFileSync(file, document);
  console.log(`${file}: ${components.length} components`);
}

/** A room as the package that it is published as. */
function entryOf(path) {
  const { link, resolved } = packages[path];
  const { dev: _dev, peer: _peer, ...entry } = withoutPeers(packages[link ? resolved : path]);
  return entry;
}

function withoutPeers({ peerDependencies: _peers, peerDependenciesMeta: _meta, devDependencies: _dev, ...entry }) {
  return entry;
}

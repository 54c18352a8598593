// Writes what comes with each package, without the peers of whoever installs it, as a CycloneDX document:
// `node scripts/sbom.mjs <folder>`. `npm sbom --omit dev` leaves out what a development dependency needs as well, so it is
// asked about a lock file that has nothing else.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';

const read = (name) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8'));
const { packages, ...lock } = read('package-lock.json');
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
  const own = withoutPeers(packages[`src/${room}`]);
  const found = new Map();
  addDependencies(`src/${room}`, found);
  // npm names the document after the folder.
  const folder = join(scratch, basename(manifest.name));
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  const all = { '': own, ...Object.fromEntries(found) };
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ ...lock, name: manifest.name, packages: all }));
  const ask = ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx', '--sbom-type', 'library'];
  const document = execFileSync('npm', ask, { cwd: folder, encoding: 'utf8', maxBuffer: 2 ** 26 });
  const { components } = JSON.parse(document);
  if (components.length !== found.size) {
    console.error(
      `${manifest.name}: the document has ${components.length} components, package-lock.json ${found.size}`,
    );
    process.exitCode = 1;
  }
  const file = join(out, `${manifest.name.replace('@', '').replace('/', '-')}.cdx.json`);
  writeFileSync(file, document);
  console.log(`${file}: ${components.length} components`);
}

/** Adds what a package depends on, directly or not; a room as the package that it is published as. */
function addDependencies(path, found) {
  for (const name of Object.keys(packages[path].dependencies ?? {})) {
    const key = resolvedFrom(path, name);
    if (found.has(key)) continue;
    const { link, resolved } = packages[key];
    const { dev: _dev, peer: _peer, ...entry } = withoutPeers(packages[link ? resolved : key]);
    found.set(key, entry);
    addDependencies(link ? resolved : key, found);
  }
}

/** Node's lookup: the nearest node_modules that has it. */
function resolvedFrom(path, name) {
  const candidate = `${path}${path === '' ? '' : '/'}node_modules/${name}`;
  if (candidate in packages) return candidate;
  if (path === '') throw new Error(`package-lock.json has no ${name}`);
  return resolvedFrom(path.slice(0, Math.max(0, path.lastIndexOf('/node_modules/'))), name);
}

function withoutPeers({ peerDependencies: _peers, peerDependenciesMeta: _meta, devDependencies: _dev, ...entry }) {
  return entry;
}

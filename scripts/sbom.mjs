// Prints what comes with the package, without the peers of whoever installs it, as a CycloneDX document. `npm sbom --omit dev` leaves out what a development
// dependency needs as well, so it is asked about the production half of the lock file alone.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const read = (name) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8'));
const {
  devDependencies: _development,
  peerDependencies: _peers,
  overrides: _overrides,
  ...manifest
} = read('package.json');
const lock = read('package-lock.json');
lock.packages = Object.fromEntries(Object.entries(lock.packages).filter(([, { dev, link }]) => !dev && !link));
delete lock.packages[''].devDependencies;
delete lock.packages[''].peerDependencies;

const scratch = mkdtempSync(join(tmpdir(), 'tillgate-sbom-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
// npm names the document after the folder.
const folder = join(scratch, manifest.name);
mkdirSync(folder);
writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock));

const ask = ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx', '--sbom-type', 'library'];
const document = execFileSync('npm', ask, { cwd: folder, encoding: 'utf8', maxBuffer: 2 ** 26 });
const expected = Object.keys(lock.packages).length - 1;
const { components } = JSON.parse(document);
if (components.length !== expected) {
  console.error(
    `the document has ${components.length} components, package-lock.json ${expected} production dependencies`,
  );
  process.exitCode = 1;
}
process.stdout.write(document);

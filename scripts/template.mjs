// Puts together what «tillgate init» writes: the scaffold with its contract and its own tests, and what makes a project of it.
// Packing does it, and the command in a clone: `node scripts/template.mjs <folder>`.
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Tests of the scaffold that need nothing but the scaffold and public entries of the packages. */
const COPIED_TESTS = [
  ...['app-scene.ts', 'app.test.ts', 'server.test.ts'],
  ...['contract/first-ids.ts', 'contract/scaffold-cases.ts'],
];
const PACKAGES = { gate: 'tillgate', stores: '@tillgate/stores', testing: '@tillgate/testing' };

export function copyTemplate(to) {
  cpSync(join(ROOT, 'examples/shop'), to, { recursive: true });
  cpSync(join(ROOT, 'scripts/no-telemetry'), join(to, 'scripts/no-telemetry'), { recursive: true });
  cpSync(join(ROOT, 'openapi.yaml'), join(to, 'openapi.yaml'));
  const ofTheRoom = /[\\/]src[\\/]app[\\/](dist|node_modules|package\.json|tsconfig\.build\.json)$/;
  cpSync(join(ROOT, 'src/app'), join(to, 'src/app'), { recursive: true, filter: (path) => !ofTheRoom.test(path) });
  for (const name of COPIED_TESTS) {
    const target = join(to, 'test', name);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, withPackages(readFileSync(join(ROOT, 'test/app', name), 'utf8')));
  }
}

/** In a copy the tests are one folder higher, and the rooms are packages. */
function withPackages(text) {
  return text.replace(/(from ')((?:\.\.\/)+)src\/(\w+)/g, (_found, from, up, room) =>
    room === 'app' ? `${from}${up.slice(3)}src/app` : `${from}${PACKAGES[room]}`,
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) copyTemplate(process.argv[2]);

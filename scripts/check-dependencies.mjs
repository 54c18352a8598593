// What comes with the package, or is installed for its scaffold, must be free to use and must not run anything when it
// is installed: checks every dependency and peer, and what those depend on.
import { existsSync, readFileSync } from 'node:fs';
import { comingWith, packages } from './lock-file.mjs';

const ALLOWED = ['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', '0BSD', 'BlueOak-1.0.0'];
/** Read by hand: the version belongs to it, so that a new one is read again. */
const READ = {
  // The MIT text is in its Readme.md alone.
  'pause@0.0.1': 'MIT',
  // Python's licence: permissive like the others. For the command line of js-yaml, which is not used.
  'argparse@3.0.4': 'PSF-2.0',
};
const KINDS = ['dependencies', 'optionalDependencies', 'peerDependencies'];
const RUN_BY_INSTALL = ['preinstall', 'install', 'postinstall'];

const read = (path) => JSON.parse(readFileSync(new URL(`../${path}`, import.meta.url), 'utf8'));
/** What users install. */
const ROOMS = read('src/rooms.json').flatMap(({ folder, isPublished }) => (isPublished ? [`src/${folder}`] : []));
const manifests = [...new Set(ROOMS.flatMap((room) => [...comingWith(room, KINDS)]))]
  // Packages of other platforms are in the lock file, but not installed.
  .filter((path) => !packages[path].link && existsSync(new URL(`../${path}/package.json`, import.meta.url)))
  .map((path) => ({ ...read(`${path}/package.json`), hasInstallScript: packages[path].hasInstallScript }));

const problems = [
  ...manifests.flatMap(problemsOf),
  ...ROOMS.flatMap((room) => scriptsOf(read(`${room}/package.json`), [...RUN_BY_INSTALL, 'prepare'])),
];
for (const problem of problems) console.error(problem);
console.log(`${manifests.length} dependencies checked, ${problems.length} problems`);
process.exitCode = problems.length > 0 || manifests.length === 0 ? 1 : 0;

function problemsOf(manifest) {
  const name = `${manifest.name}@${manifest.version}`;
  // Manifests of long ago have a list.
  const license = manifest.license ?? manifest.licenses?.map(({ type }) => type).join(' OR ') ?? READ[name];
  const free = READ[name] === license || isAllowed(license);
  return [
    ...(free ? [] : [`${name}: licence ${license ?? 'not named'}; without a look only ${ALLOWED.join(', ')}`]),
    ...scriptsOf(manifest, RUN_BY_INSTALL),
    ...(manifest.hasInstallScript ? [`${name}: compiles something when it is installed`] : []),
  ];
}

function scriptsOf({ name, version, scripts = {} }, unwanted) {
  return unwanted.filter((script) => script in scripts).map((script) => `${name}@${version}: has a script «${script}»`);
}

/** An SPDX expression without nesting: of alternatives one must be allowed, of a combination all. */
function isAllowed(license = '') {
  const alternatives = license.replace(/[()]/g, '').split(' OR ');
  return alternatives.some((names) => names.split(' AND ').every((name) => ALLOWED.includes(name)));
}

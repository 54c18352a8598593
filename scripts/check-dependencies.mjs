// What comes with the package must be free to use and must not run anything when it is installed: looks at every
// installed production dependency.
import { existsSync, readFileSync } from 'node:fs';

const ALLOWED = ['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', '0BSD', 'BlueOak-1.0.0'];
/** Read by hand: the version belongs to it, so that a new one is read again. */
const READ = {
  // The MIT text is in its Readme.md alone.
  'pause@0.0.1': 'MIT',
  // Python's licence: permissive like the others. For the command line of js-yaml, which is not used.
  'argparse@3.0.4': 'PSF-2.0',
};
const RUN_BY_INSTALL = ['preinstall', 'install', 'postinstall'];

const read = (path) => JSON.parse(readFileSync(new URL(`../${path}`, import.meta.url), 'utf8'));
// Packages of other platforms are in the lock file, but not installed.
const production = Object.entries(read('package-lock.json').packages)
  .filter(([path, { dev }]) => path !== '' && !dev && existsSync(new URL(`../${path}/package.json`, import.meta.url)))
  .map(([path, { hasInstallScript }]) => ({ ...read(`${path}/package.json`), hasInstallScript }));

const problems = [
  ...production.flatMap(problemsOf),
  ...scriptsOf(read('package.json'), [...RUN_BY_INSTALL, 'prepare']),
];
for (const problem of problems) console.error(problem);
console.log(`${production.length} production dependencies looked at, ${problems.length} problems`);
process.exitCode = problems.length > 0 || production.length === 0 ? 1 : 0;

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

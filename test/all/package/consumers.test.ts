import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { isShortened } from '../../support/amount';
import { install, runGroup, startFrom, versionOf } from './consumer';
import type { Consumer, Group } from './consumer';
import { node, npm } from './npm';
import { COMMAND, packTillgate } from './tarball';

/** Those alone in a group show what the package does where nothing else is installed. */
const EVERY_GROUP: readonly Group[] = [
  { name: 'express4', projects: ['cjs-js-jest-express4', 'cjs-ts-jest-express4'] },
  // The package that it migrates from adds req.auth to the types of Express.
  { name: 'express4-migrating', projects: ['esm-ts-vitest-migrating-express4'] },
  { name: 'express4-bare', projects: ['cjs-js-node-test-express4'] },
  {
    name: 'express5',
    projects: ['cjs-js-jest-express5', 'esm-ts-jest-express5', 'esm-ts-node-test-express5', 'esm-ts-vitest-express5'],
    rooms: COMMAND,
  },
  { name: 'express5-bare', projects: ['esm-js-node-test-express5'], rooms: COMMAND },
];
/** `.ci/run` leaves out what costs most: other pairs of a runner and an Express, and the tests of a new project. */
const KEPT = [
  'cjs-js-node-test-express4',
  'esm-ts-vitest-express5',
  'cjs-js-jest-express5',
  'esm-js-node-test-express5',
];
const GROUPS = EVERY_GROUP.map((group) => {
  return isShortened ? { ...group, projects: group.projects.filter((name) => KEPT.includes(name)) } : group;
}).filter(({ projects }) => projects.length > 0);
const ALL = GROUPS.flatMap(({ projects }) => projects);

/** What may not be loaded before it is used: it costs time, or does not load in an untouched Jest. */
const HEAVY = [
  'express',
  'helmet',
  'pino',
  'ajv',
  'commander',
  'jose',
  'jwks-rsa',
  'js-yaml',
  'redis',
  'ioredis',
  'pg',
];
const ENTRIES = [
  ['tillgate', HEAVY],
  ['tillgate/env', HEAVY],
  ['tillgate/opentelemetry', HEAVY],
  ['tillgate/generations', HEAVY],
  ['@tillgate/stores', HEAVY],
  ['@tillgate/stores/url', HEAVY],
  ['@tillgate/client', HEAVY],
  ['@tillgate/cli', ['pino', 'ajv', 'commander', 'jose', 'jwks-rsa', 'redis', 'ioredis', 'pg']],
  ['@tillgate/testing', HEAVY],
  ['@tillgate/testing/vitest', HEAVY],
] as const;

let folder: string;
let tarballs: readonly string[];
const consumers = new Map<string, Consumer>();

async function runInTurn(groups: readonly Group[]): Promise<void> {
  for (const group of groups)
    for (const [name, one] of await runGroup(
      folder,
      group,
      group.rooms ? await packTillgate(...group.rooms) : tarballs,
    ))
      consumers.set(name, one);
}

function consumer(name: string): Consumer {
  const found = consumers.get(name);
  if (!found) throw new Error(`${name} was not run`);
  return found;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tillgate-package-'));
  tarballs = await packTillgate('gate', 'stores', 'client', 'testing');
  // One row after the other would take twice as long.
  const isOf5 = ({ name }: Group): boolean => name.startsWith('express5');
  await Promise.all([runInTurn(GROUPS.filter(isOf5)), runInTurn(GROUPS.filter((group) => !isOf5(group)))]);
  if (isShortened)
    console.info(`left out: the consumers but ${KEPT.join(', ')}; the tests of a project of tillgate init`);
}, 600_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

/** What Jest, Vitest and node:test say in three ways, in colour where `CI` is set: the contract alone has 35 cases. */
function passedTests(output: string): number {
  const counts = [...stripVTControlCharacters(output).matchAll(/Tests:? +(\d+) passed|^\W+pass (\d+)$/gm)].map(
    ([, one, other]) => Number(one ?? other),
  );
  return Math.max(0, ...counts);
}

it.each(GROUPS)('the package installs without warnings: $name', ({ projects: [name = ''] }) => {
  expect(consumer(name).installed).toMatchObject({ exitCode: 0, errors: '' });
});

describe.each(ALL)('the package in %s', (name) => {
  it('passes the contract cases of the project, in its own test runner', () => {
    const { tested } = consumer(name);
    if (tested.exitCode !== 0) throw new Error(`${tested.output}\n${tested.errors}`);
    expect(passedTests(`${tested.output}${tested.errors}`)).toBeGreaterThan(30);
  });
});

describe.each(GROUPS)('Express of the group $name', ({ projects: [name = ''] }) => {
  it('stays the one of the projects, and is there once', async () => {
    expect(await versionOf(consumer(name), 'express')).toMatch(name.endsWith('4') ? /^4\./ : /^5\./);
    const { output } = await npm(consumer(name).root, 'ls', 'express', '--parseable', '--loglevel=error');
    expect(
      output
        .trim()
        .split('\n')
        .filter((path) => path.endsWith('express')),
    ).toHaveLength(1);
  });
});

describe.each(ENTRIES)('the entry %s', (entry, unwanted) => {
  const project = 'esm-js-node-test-express5';

  async function probe(way: 'import' | 'require'): Promise<{ names: string[]; changed: string[]; packages: string[] }> {
    const { output, errors } = await node(consumer(project).folder, 'probe.cjs', entry, way);
    expect(errors).toBe('');
    return JSON.parse(output);
  }

  it('gives the same names to import and to require', async () => {
    const [imported, required] = [await probe('import'), await probe('require')];
    expect(imported.names).toEqual(required.names);
    expect(imported.names).not.toEqual([]);
  });

  it('changes nothing by being loaded, and loads nothing that is not used yet', async () => {
    const { changed, packages } = await probe('require');
    expect(changed).toEqual([]);
    expect(packages.filter((name) => (unwanted as readonly string[]).includes(name))).toEqual([]);
  });
});

describe('the installed package', () => {
  it('has no import() outside the command line: a default Jest cannot run one', () => {
    const home = join(consumer('esm-js-node-test-express5').root, 'node_modules');
    const scripts = [
      'tillgate/dist',
      '@tillgate/stores/dist',
      '@tillgate/client/dist',
      '@tillgate/testing/dist',
    ].flatMap((dist) =>
      readdirSync(join(home, dist), { recursive: true, encoding: 'utf8' }).map((name) => join(home, dist, name)),
    );
    const texts = scripts.filter((name) => name.endsWith('.js')).map((name) => readFileSync(name, 'utf8'));
    expect(texts.length).toBeGreaterThan(50);
    expect(texts.filter((text) => /\bimport\(/.test(text))).toEqual([]);
  });
});

describe('the command of the package', () => {
  // The project is the scaffold, whose own tests are those of test/app.
  (isShortened ? it.skip : it)('starts a project that passes its own tests', async () => {
    const { folder: home } = consumer('esm-js-node-test-express5');
    expect(await npm(home, 'exec', '--', 'tillgate', 'init', 'shop')).toMatchObject({ exitCode: 0 });
    const shop = join(home, 'shop');
    await startFrom(consumer('esm-ts-jest-express5').root, shop);
    expect(await install(shop, await packTillgate(...COMMAND))).toMatchObject({ exitCode: 0 });
    // Jest writes its summary to stderr.
    const { exitCode, output, errors } = await npm(shop, 'test', '--loglevel=error');
    if (exitCode !== 0) throw new Error(`${output}\n${errors}`);
    expect(passedTests(errors)).toBeGreaterThan(1_000);
  });
});

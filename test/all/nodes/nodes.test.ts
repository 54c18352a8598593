import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { INSTALL_FLAGS } from '../package/consumer';
import { execute, npm } from '../package/npm';
import { runSteps, STEPS } from '../transport/steps';

const ROOT = join(__dirname, '../../..');
const JEST = require.resolve('jest/bin/jest');
/** The suites that depend on what a Node does: its cryptography and fetch, its HTTP server, requests as bytes. */
const SUITES = ['token', 'possession', 'express', 'hostile'].map((folder) => `^${ROOT}/test/gate/${folder}/`);
/** The major versions that package.json promises; the suites run on this Node anyway. */
const OTHERS = [20, 22, 24, 26].filter((major) => major !== Number(process.versions.node.split('.')[0]));

interface Assertion {
  readonly status: string;
  readonly fullName: string;
  readonly failureMessages: readonly string[];
}

interface Results {
  readonly numFailedTests: number;
  readonly numPassedTests: number;
  readonly numPendingTests: number;
  readonly testResults: readonly { readonly assertionResults: readonly Assertion[] }[];
}

/** The binary of the newest Node of a major version, which npm has as a package. */
async function installNode(major: number): Promise<string> {
  const folder = join(process.env['RUN_FOLDER'] ?? '', `node-${major}`);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{ "private": true }');
  const { exitCode, errors } = await npm(folder, 'install', `node@${major}`, ...INSTALL_FLAGS);
  if (exitCode !== 0) throw new Error(`this suite needs node@${major} from the registry of npm: ${errors}`);
  return join(folder, 'node_modules/node/bin/node');
}

const installed = new Map<number, string>();

beforeAll(async () => {
  await Promise.all(OTHERS.map(async (major) => installed.set(major, await installNode(major))));
}, 600_000);

it.each(OTHERS)(
  'the suites of the gate that depend on Node pass on the newest Node %i',
  async (major) => {
    const node = installed.get(major)!;
    expect((await execute(ROOT, node, ['--version'])).output).toMatch(new RegExp(`^v${major}\\.`));
    const file = join(process.env['RUN_FOLDER'] ?? '', `node-${major}.json`);
    const { output, errors } = await execute(ROOT, node, [
      ...[JEST, ...SUITES, '--maxWorkers=2', '--testTimeout=120000', '--silent'],
      ...['--json', `--outputFile=${file}`],
    ]);
    const text = await readFile(file, 'utf8').catch(() => {
      throw new Error(`Jest wrote no results:\n${output}\n${errors}`);
    });
    const { numFailedTests, numPassedTests, numPendingTests, testResults } = JSON.parse(text) as Results;
    const failed = testResults.flatMap(({ assertionResults }) =>
      assertionResults.flatMap((one) => (one.status === 'failed' ? [[one.fullName, one.failureMessages]] : [])),
    );
    expect({ failed, numFailedTests, numPendingTests }).toEqual({ failed: [], numFailedTests: 0, numPendingTests: 0 });
    expect(numPassedTests).toBeGreaterThan(2_000);
  },
  600_000,
);

it.each(OTHERS)(
  'a gate loads no undici on Node %i, and uses fetch and the dispatcher of an app that has loaded it',
  (major) => {
    const node = installed.get(major)!;
    expect(runSteps(node, ...Object.keys(STEPS))).toMatchObject(Object.values(STEPS));
    for (const steps of [['dispatcher', 'gate'], ['dispatchLater']])
      expect(runSteps(node, ...steps).at(-1)).toMatchObject({ clients: ['fetch'], isDispatched: true });
  },
);

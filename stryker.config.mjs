// `npm run mutation`: see docs/maintainers/mutation.md.
import { readFileSync } from 'node:fs';

// The sandbox has a link to node_modules, and the links in there lead to the sources outside of it, where nothing is
// mutated: the names of the rooms lead to the sources of the sandbox instead.
const json = (path) => JSON.parse(readFileSync(path, 'utf8'));
const rooms = json('src/rooms.json').map(({ folder }) => [folder, json(`src/${folder}/package.json`)]);
const moduleNameMapper = Object.fromEntries(
  rooms.flatMap(([room, { name, exports = {} }]) =>
    Object.entries(exports)
      .filter(([, { source }]) => source)
      .map(([entry, { source }]) => [`^${name}${entry.slice(1)}$`, `<rootDir>/src/${room}/${source.slice(2)}`]),
  ),
);

/** @type {import('@stryker-mutator/core').PartialStrykerOptions} */
export default {
  testRunner: 'jest',
  // Jest's own runner, which tells Stryker which test reaches which mutant.
  jest: {
    config: {
      runner: 'jest-runner',
      // Jest finds the tests that reach a file only where it knows the sources.
      roots: ['<rootDir>/src', '<rootDir>/test'],
      // Suites that read the text of the sources, or need a process of their own or more time.
      testPathIgnorePatterns: [
        '/node_modules/',
        '<rootDir>/test/(all|repository|simulation)/',
        'observe.test',
        'inspect.test',
      ],
      moduleNameMapper,
      transform: { '^.+\\.[tj]s$': '<rootDir>/test/transform.cjs' },
      setupFilesAfterEnv: [],
      testTimeout: 20_000,
    },
  },
  mutate: ['src/gate/{net,token,verifier,express,generation,possession}/**/*.ts', 'src/cli/auth-server/**/*.ts'],
  coverageAnalysis: 'perTest',
  dryRunTimeoutMinutes: 20,
  // A mutant of code that runs while a module loads needs all tests again.
  ignoreStatic: true,
  reporters: ['clear-text', 'progress-append-only', 'html'],
  htmlReporter: { fileName: 'coverage/mutation.html' },
  clearTextReporter: { allowColor: false, allowEmojis: false, reportTests: false, logTests: false },
  thresholds: { high: 95, low: 92, break: 90 },
  // Of one mutant, beyond the time that its tests take without it.
  timeoutMS: 10_000,
  // Not hidden: Express serves no file below a directory whose name begins with a dot.
  tempDirName: 'coverage/mutation',
  // Hidden directories can change during a run.
  ignorePatterns: ['.*', 'api', 'bench', 'coverage', 'dist', 'docs-api'],
};

/** @jest-config-loader esbuild-register */
import type { Config } from 'jest';
import { availableParallelism } from 'node:os';
import longSuites from './test/all/setup/long-suites.json';

/** Suites of `npm test` that run again at full size: see test/support/amount.ts. */
const FULL_SIZE = [
  'app/contract/contract',
  'gate/generation/memory',
  'testing/contract-cases',
  'testing/contract-classes',
  'gate/express/diagnosis/advice',
  'gate/express/report-only-orders',
  'gate/hostile/growth',
];

/** What `.ci/run` leaves out: run-folder.cjs prints why. */
const LEFT_OUT = process.env['WITHOUT_LONG'] ? Object.keys(longSuites) : [];

/** `npm run test:all`: suites that need child processes, real servers, a browser, a package registry, or globals of their own. */
const config: Config = {
  roots: ['<rootDir>/test'],
  globalSetup: '<rootDir>/test/all/setup/run-folder.cjs',
  globalTeardown: '<rootDir>/test/all/setup/remove-run-folder.cjs',
  // Projects that install the package run their tests themselves.
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/all/package/consumers/'],
  testMatch: [
    ...['all/**/*', ...FULL_SIZE].map((suite) => `<rootDir>/test/${suite}.test.ts`),
    ...LEFT_OUT.map((suite) => `!**/test/${suite}.test.ts`),
  ],
  testSequencer: '<rootDir>/test/all/setup/longest-first.cjs',
  transform: { '^.+\\.[tj]s$': '<rootDir>/test/transform.cjs' },
  // One room imports another by its name: it gets the sources.
  testEnvironmentOptions: { customExportConditions: ['source', 'node', 'node-addons'] },
  globals: { isFullRun: true },
  // Most suites wait for servers and child processes half of their time. Jest knows no percentage above 100.
  maxWorkers: Math.ceil(availableParallelism() * 1.5),
  // Scenarios of one file that run next to each other: they wait most of the time.
  maxConcurrency: 8,
  // Before Node 24 every suite slows down the promises of those after it in the same process (an AsyncLocalStorage of Jest).
  workerIdleMemoryLimit: '400MB',
  // A process that has just replaced one ends once it has started, which takes more than the default of 500 ms.
  workerGracefulExitTimeout: 30_000,
  // A limit for tests that hang: a machine that does other work as well must not fail one.
  testTimeout: 240_000,
};

export default config;

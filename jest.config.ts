/** @jest-config-loader esbuild-register */
import type { Config } from 'jest';

/** `npm test`, and `npx jest test/express/guard.test.ts`: what needs no network, no child process and no waiting. */
const config: Config = {
  roots: ['<rootDir>/test'],
  // Suites with child processes, real servers, browsers or many thousand inputs: `npm run test:all`.
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/all/'],
  transform: { '^.+\\.[tj]s$': '<rootDir>/test/transform.cjs' },
  // No test waits for time to pass; this is for slow machines.
  testTimeout: 20_000,
  // Jest's default leaves one core unused, which on two cores is half of the machine.
  maxWorkers: '100%',
  // Before Node 24 every suite slows down the promises of those after it in the same process (an AsyncLocalStorage of Jest).
  workerIdleMemoryLimit: '400MB',
  // `npm run coverage`
  coverageProvider: 'v8',
  collectCoverageFrom: ['src/**/*.ts', '!src/**/*.d.ts'],
  coverageReporters: ['text-summary', 'json', 'lcovonly'],
  coverageThreshold: { global: { lines: 95, branches: 90 } },
};

export default config;

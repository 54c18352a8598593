/** @jest-config-loader esbuild-register */
import type { Config } from 'jest';

const config: Config = {
  testEnvironment: 'node',
  roots: ['<rootDir>/test'],
  // No test waits for time to pass; this is for slow machines.
  testTimeout: 20_000,
  // Jest's default leaves one core unused, which on two cores is half of the machine.
  maxWorkers: '100%',
  testMatch: ['**/*.test.ts'],
  // Suites that need an engine, a browser or a foreign server: `npm run test:all`.
  // The suites of test/together are the others once more, for `npm test`.
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/all/', '<rootDir>/test/together/'],
  globalSetup: '<rootDir>/test/compile-sources.cjs',
  // jest-circus alone imports it by this name.
  moduleNameMapper: { '^node:async_hooks$': '<rootDir>/test/support/running-test.cjs' },
  // Modules run in a context whose global object is slow to read.
  sandboxInjectedGlobals: ['Array', 'JSON', 'Math', 'Number', 'Object', 'Reflect'],
  transform: { '^.+\\.[tj]s$': '<rootDir>/test/transform.cjs' },
};

export default config;

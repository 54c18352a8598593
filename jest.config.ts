/** @jest-config-loader esbuild-register */
import type { Config } from 'jest';
import { availableParallelism } from 'node:os';

/** Suites about what a process has once: its metrics, and V8's counts of calls, which the coverage is read from. */
const ALONE = [
  'test/gate/opentelemetry/observe.test.ts',
  'test/app/server.test.ts',
  'test/gate/express/parses.test.ts',
];

/** Suites that read the sources with the compiler of TypeScript, which takes half a second to load. */
const TOGETHER = ['callbacks', 'layers', 'names', 'rooms'].map((name) => `test/repository/${name}.test.ts`);

/** `npm test`, and `npx jest test/gate/express/require-scope.test.ts`: what needs no network, no child process and no waiting. */
const config: Config = {
  roots: ['<rootDir>/test'],
  // Suites with child processes, real servers, browsers or many thousand inputs: `npm run test:all`.
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/all/'],
  runner: ['<rootDir>/test/setup/runner.mjs', { alone: ALONE, together: TOGETHER }],
  reporters: ['default', '<rootDir>/test/setup/failed-rooms.mjs'],
  // The runner compiles TypeScript, all at once.
  transform: {},
  // A suite waits for its own server a fifth of the time. Jest knows no percentage above 100.
  maxWorkers: Math.ceil(availableParallelism() * 1.5),
};

export default config;

/** @jest-config-loader esbuild-register */
import { join } from 'node:path';
import type { Config } from 'jest';
import base from '../../jest.config';

const config: Config = {
  ...base,
  rootDir: '../..',
  roots: ['<rootDir>/test'],
  // Stryker reads this by itself and knows no <rootDir>.
  testEnvironment: join(__dirname, '../environment.cjs'),
  // What waits for ever under a mutant has found it.
  testTimeout: 5_000,
  testMatch: ['<rootDir>/test/mutation/all-suites.ts'],
};

export default config;

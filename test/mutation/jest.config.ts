/** @jest-config-loader esbuild-register */
import { join } from 'node:path';
import type { Config } from 'jest';
import base from '../../jest.config';

const config: Config = {
  ...base,
  rootDir: '../..',
  // Jest searches these folders again for each mutant.
  roots: ['<rootDir>/test/mutation'],
  // Stryker reads this itself and does not replace <rootDir>.
  testEnvironment: join(__dirname, 'environment.cjs'),
  // A test that never ends has noticed its mutant.
  testTimeout: 5_000,
  testMatch: ['<rootDir>/test/mutation/all-suites.ts'],
};

export default config;

/** @jest-config-loader esbuild-register */
import type { Config } from 'jest';
import base from '../../jest.config';

const config: Config = {
  ...base,
  rootDir: '../..',
  roots: ['<rootDir>/test'],
  // What waits for ever under a mutant has found it.
  testTimeout: 5_000,
  testMatch: ['<rootDir>/test/mutation/all-suites.ts'],
};

export default config;

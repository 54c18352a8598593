/** @jest-config-loader esbuild-register */
import type { Config } from 'jest';
import base from './jest.config';

const config: Config = {
  ...base,
  // Projects that install the package run their tests themselves.
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/all/package/consumers/'],
  testMatch: ['<rootDir>/test/all/**/*.test.ts'],
  testTimeout: 60_000,
};

export default config;

/** @jest-config-loader esbuild-register */
import type { Config } from 'jest';
import base from './jest.config';

const config: Config = {
  ...base,
  testPathIgnorePatterns: ['/node_modules/'],
  testMatch: ['<rootDir>/test/all/**/*.test.ts'],
  testTimeout: 60_000,
};

export default config;

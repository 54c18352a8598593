/** @jest-config-loader esbuild-register */
import type { Config } from 'jest';
import base from './jest.config';

/** `npm test`: each folder of suites in one file, in three quarters of the time. A single suite: `npx jest test/token/bearer`. */
const config: Config = {
  ...base,
  testPathIgnorePatterns: ['/node_modules/'],
  testMatch: ['<rootDir>/test/*.test.ts', '<rootDir>/test/together/*.test.ts'],
};

export default config;

/** @jest-config-loader esbuild-register */
import type { Config } from 'jest';
import base from './jest.config';
import { ALONE } from './test/together/suites';

/**
 * `npm test`: the suites of each folder in one Jest file, so that what they import is loaded once. That takes half the
 * time (CONTRIBUTING.md says how the tests are run). `npx jest test/token/bearer` and editors run the same suites one by one.
 */
const config: Config = {
  ...base,
  testPathIgnorePatterns: ['/node_modules/'],
  testMatch: ['*.test.ts', 'together/*.test.ts', ...ALONE].map((pattern) => `<rootDir>/test/${pattern}`),
};

export default config;

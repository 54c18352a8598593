/** @jest-config-loader esbuild-register */
import type { Config } from 'jest';
import base from './jest.config';
import { ALONE } from './test/together/suites';

/**
 * `npm test`: the suites of each folder in one Jest file. Jest loads every module anew for each file: as
 * 197 files they take half as much processor time again. `npx jest test/token` and editors run the suites one by one.
 */
const config: Config = {
  ...base,
  testPathIgnorePatterns: ['/node_modules/'],
  testMatch: ['*.test.ts', 'together/*.test.ts', ...ALONE].map((pattern) => `<rootDir>/test/${pattern}`),
};

export default config;

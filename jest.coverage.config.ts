/** @jest-config-loader esbuild-register */
import type { Config } from 'jest';
import together from './jest.together.config';

/** `npm run coverage`: the suites of `npm test`, and how much of src they reach. */
const config: Config = {
  ...together,
  collectCoverage: true,
  coverageProvider: 'v8',
  collectCoverageFrom: ['src/**/*.ts', '!src/**/*.d.ts'],
  coverageReporters: ['text-summary', 'json', 'lcovonly'],
  coverageThreshold: { global: { lines: 95, branches: 90 } },
};

export default config;

/** @jest-config-loader esbuild-register */
import type { Config } from 'jest';
import { join } from 'node:path';
import together from '../../../jest.together.config';

/** The suites that depend on what a Node does: verification, requests as bytes, attacks. */
const SUITES = [
  'all/nodes/gate-suites.ts',
  'together/behaviours.test.ts',
  'together/hostile.test.ts',
  'hostile/prototype-pollution.test.ts',
];

// The sources are compiled already, and other suites are using them.
const { globalSetup: _compileSources, ...rest } = together;

const config: Config = {
  ...rest,
  rootDir: join(__dirname, '../../..'),
  testMatch: SUITES.map((suite) => `<rootDir>/test/${suite}`),
  testTimeout: 120_000,
};

export default config;

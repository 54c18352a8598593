/** @jest-config-loader esbuild-register */
import type { Config } from 'jest';

const config: Config = {
  testEnvironment: '<rootDir>/test/environment.cjs',
  roots: ['<rootDir>/test'],
  // Nothing here waits for time to pass; this is for slow machines.
  testTimeout: 20_000,
  // Jest leaves one core free, which on two cores is half of the machine.
  maxWorkers: '100%',
  testMatch: ['**/*.test.ts'],
  // Whatever needs an engine, a browser or a foreign server lives in test/all and runs with `npm run test:all`.
  // Those of test/together are the others once more, for `npm test`.
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/all/', '<rootDir>/test/together/'],
  transform: { '^.+\\.[tj]s$': '<rootDir>/test/transform.cjs' },
  // jwks-rsa requires jose, which is published as ESM only: inside Jest it has to be transformed.
  transformIgnorePatterns: ['/node_modules/(?!jose/)'],
};

export default config;

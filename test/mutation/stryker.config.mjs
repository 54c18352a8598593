// Stryker's options for `npm run mutation`; run.mjs adds the files to mutate.
/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  testRunner: 'jest',
  plugins: ['@stryker-mutator/jest-runner'],
  jest: { projectType: 'custom', configFile: 'test/mutation/jest.config.ts', enableFindRelatedTests: false },
  coverageAnalysis: 'perTest',
  reporters: ['clear-text'],
  clearTextReporter: {
    allowColor: false,
    allowEmojis: false,
    reportTests: false,
    logTests: false,
    reportScoreTable: false,
  },
  concurrency: Number(process.env['MUTATION_WORKERS'] ?? 2),
  timeoutMS: 10_000,
  // Not hidden: Express serves no file below a directory whose name begins with a dot.
  tempDirName: `coverage/mutation-${process.pid}`,
  // Hidden directories can change during a run.
  ignorePatterns: ['.*', 'api', 'bench', 'coverage', 'dist', 'docs'],
};

// What `npm run mutation` tells Stryker; run.mjs names the file, plan.mjs its suites.
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
  // Not hidden: Express serves no file from below a directory with a dot.
  tempDirName: `coverage/mutation-${process.pid}`,
  // Hidden directories come and go while somebody works.
  ignorePatterns: ['.*', 'api', 'bench', 'coverage', 'dist', 'docs'],
};

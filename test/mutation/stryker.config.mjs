// Stryker's options for `npm run mutation`; run.mjs adds the files to mutate.
/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  testRunner: 'tillgate',
  plugins: ['./test/mutation/runner.mjs'],
  coverageAnalysis: 'perTest',
  // Code that runs while a module loads costs a load per mutant.
  ignoreStatic: process.env['MUTATION_STATIC'] !== '1',
  reporters: ['clear-text', 'progress-append-only'],
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

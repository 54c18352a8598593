// A process that runs the suites whose paths runner.mjs sends.
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const { default: run, setWorkerData } = await import(
  new URL('./worker-runner.js', import.meta.resolve('jest-light-runner')).href
);
const typescript = createRequire(import.meta.url)('./typescript.cjs');
const SUITE = fileURLToPath(new URL('./suite.cjs', import.meta.url));

// Processes that tests fork get no option of this one: they run what a user runs.
process.execArgv = [];
// What a suite has left open does not keep the process.
process.on('disconnect', () => process.exit());
process.on('message', ({ path, compiled, ...configuration }) => {
  if (path === undefined) {
    typescript.loadTypeScript(compiled);
    return setWorkerData(configuration);
  }
  typescript.suite = path;
  run(SUITE).then(
    (result) => process.send({ result: ofSuite(path, result) }),
    ({ name, message, stack }) => process.send({ error: { name, message, stack: typescript.withSourceLines(stack) } }),
  );
});

/** A result that jest-light-runner has attributed to suite.cjs. */
function ofSuite(testFilePath, result) {
  const testResults = result.testResults.map(({ failureMessages, ...rest }) => ({
    ...rest,
    failureMessages: failureMessages.map(typescript.withSourceLines),
  }));
  return { ...result, testFilePath, testResults, failureMessage: typescript.withSourceLines(result.failureMessage) };
}

// Adds up Jest's JSON reports: `node scripts/test-summary.mjs FAILED_STEPS REPORT...`. Fails when anything failed or a
// report is missing or empty: a suite that ran no test has shown nothing.
import { readFileSync } from 'node:fs';

const [failedSteps, ...reports] = process.argv.slice(2);
const sum = { passed: 0, failed: Number(failedSteps), skipped: 0 };
for (const path of reports) {
  const report = read(path);
  sum.passed += report.numPassedTests;
  sum.failed += report.numFailedTests + report.numRuntimeErrorTestSuites + (report.numPassedTests === 0 ? 1 : 0);
  sum.skipped += report.numPendingTests + report.numTodoTests;
}
console.log(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`);
process.exitCode = sum.failed > 0 ? 1 : 0;

function read(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    console.log(`no test report at ${path}`);
    return { numPassedTests: 0, numFailedTests: 0, numRuntimeErrorTestSuites: 0, numPendingTests: 0, numTodoTests: 0 };
  }
}

// Mutation tests of what decides, file by file: `npm run mutation`, or `npm run mutation -- src/token/scopes.ts`.
import { Stryker } from '@stryker-mutator/core';
import { PLAN } from './plan.mjs';
import options from './stryker.config.mjs';

/** Promised over all, in percent; no file may be far below. */
const LEAST_OVER_ALL = 90;
const LEAST_PER_FILE = 85;
/** A mutant that is never run is one that no test would have found. */
const KILLED = ['Killed', 'Timeout'];
const ALIVE = ['Survived', 'NoCoverage'];

const chosen = process.argv.slice(2);
const rows = [];
for (const file of chosen.length > 0 ? chosen : Object.keys(PLAN)) rows.push(await mutate(file));
const over = {
  file: 'all',
  killed: rows.reduce((sum, { killed }) => sum + killed, 0),
  survived: rows.reduce((sum, { survived }) => sum + survived, 0),
};
for (const row of [...rows, over]) console.log(line(row));
const tooLow = rows.filter((row) => score(row) < LEAST_PER_FILE);
if (score(over) < LEAST_OVER_ALL || tooLow.length > 0) process.exitCode = 1;

/** `src/token/jws.ts:30-45` are the mutants of those lines alone. */
async function mutate(file) {
  process.env.SUITES = PLAN[file.split(':')[0]].join();
  const mutants = await new Stryker({ ...options, mutate: [file] }).runMutationTest();
  const count = (states) => mutants.filter(({ status }) => states.includes(status)).length;
  return { file, killed: count(KILLED), survived: count(ALIVE) };
}

function score({ killed, survived }) {
  return (100 * killed) / (killed + survived);
}

function line(row) {
  return `| ${row.file} | ${row.killed + row.survived} | ${row.killed} | ${row.survived} | ${score(row).toFixed(1)} |`;
}

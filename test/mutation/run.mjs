/**
 * Mutation tests: `npm run mutation` runs all folders of the plan, `npm run mutation -- src/express` one of them,
 * `-- src/token/scopes.ts` one file, `-- src/token/scopes.ts:10-20` some lines. All but the last update `results.json` and
 * the table in docs/mutation.md.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { performance } from 'node:perf_hooks';
import { Stryker } from '@stryker-mutator/core';
import options from './stryker.config.mjs';

const PLAN = JSON.parse(readFileSync(new URL('plan.json', import.meta.url), 'utf8'));
const RESULTS = new URL('results.json', import.meta.url);
const DOCS = new URL('../../docs/mutation.md', import.meta.url);
const KILLED = ['Killed', 'Timeout'];
/** No test reaches a mutant without coverage: none would have noticed it. */
const ALIVE = ['Survived', 'NoCoverage'];

const results = JSON.parse(readFileSync(RESULTS, 'utf8'));
const given = process.argv.slice(2);
const chosen = (given.length > 0 ? given : Object.keys(PLAN.folders)).flatMap((target) => PLAN.only[target] ?? target);
for (const [folder, targets] of Object.entries(groupBy(chosen, folderOf))) await mutate(folder, targets);

const files = Object.entries(results.files).sort(([a], [b]) => a.localeCompare(b));
const all = total(files.map(([, result]) => result));
console.log(table());
const tooLow = files.filter(([, result]) => score(result) < PLAN.thresholds.file).map(([file]) => file);
for (const file of tooLow) console.log(`${file} is below ${PLAN.thresholds.file}%`);
if (score(all) < PLAN.thresholds.all) console.log(`all files together are below ${PLAN.thresholds.all}%`);
if (tooLow.length > 0 || score(all) < PLAN.thresholds.all) process.exitCode = 1;

async function mutate(folder, targets) {
  const startedMs = performance.now();
  process.env.SUITES = PLAN.folders[folder].join();
  process.env.LEFT_OUT = PLAN.leftOut.join();
  const patterns = targets.map((target) => (/\.ts(:|$)/.test(target) ? target : `${target}/**/*.ts`));
  const mutants = await new Stryker({ ...options, mutate: patterns }).runMutationTest();
  console.log(
    `${targets.join()}: ${mutants.length} mutants in ${Math.round((performance.now() - startedMs) / 1000)} s`,
  );
  const found = groupBy(mutants, fileOf);
  const partial = targets.some((target) => target.includes(':'));
  if (!partial)
    for (const file of Object.keys(results.files))
      if (targets.some((target) => isWithin(file, target)) || !existsSync(file)) delete results.files[file];
  for (const [file, own] of Object.entries(found)) {
    const survived = own.filter(({ status }) => ALIVE.includes(status));
    const killed = own.filter(({ status }) => KILLED.includes(status)).length;
    if (killed + survived.length === 0) continue;
    results.files[file] = { killed, survived: survived.map(position).sort((a, b) => a - b) };
  }
  if (partial) return;
  results.takenOn = new Date().toISOString().slice(0, 10);
  writeFileSync(RESULTS, `${JSON.stringify(results, undefined, 2)}\n`);
  const docs = readFileSync(DOCS, 'utf8');
  writeFileSync(
    DOCS,
    docs.replace(/(<!-- results -->\n)[^]*(<!-- end of results -->)/, (_, a, b) => `${a}\n${table()}\n\n${b}`),
  );
}

function folderOf(target) {
  const folder = Object.keys(PLAN.folders).find((name) => target === name || target.startsWith(`${name}/`));
  if (folder !== undefined) return folder;
  throw new Error(`${target}: not in the plan, which has ${Object.keys(PLAN.folders).join(', ')}`);
}

function isWithin(file, target) {
  return file === target || file.startsWith(`${target}/`);
}

function fileOf({ fileName }) {
  return relative(process.cwd(), fileName);
}

function groupBy(values, keyOf) {
  const groups = {};
  for (const value of values) (groups[keyOf(value)] ??= []).push(value);
  return groups;
}

/** The line of a survivor. */
function position({ location }) {
  return location.start.line;
}

function total(rows) {
  return {
    killed: rows.reduce((sum, { killed }) => sum + killed, 0),
    survived: rows.flatMap(({ survived }) => survived),
  };
}

function score({ killed, survived }) {
  return (100 * killed) / (killed + survived.length);
}

function table() {
  const rows = Object.entries(results.files).sort(([a], [b]) => a.localeCompare(b));
  const line = (name, { killed, survived }, where) =>
    `| ${name} | ${killed + survived.length} | ${killed} | ${survived.length} | ${score({ killed, survived }).toFixed(1)}% | ${where} |`;
  return [
    '| file | mutants | killed | survived | score | lines of survivors |',
    '| --- | ---: | ---: | ---: | ---: | --- |',
    ...rows.map(([file, result]) => line(`\`${file}\``, result, result.survived.join(', '))),
    line('all', total(rows.map(([, result]) => result)), ''),
  ].join('\n');
}

import { execFileSync } from 'node:child_process';
import { amount } from '../../support/amount';
import { COMPILED } from '../support/compiled';
import { fuzz, settle } from './campaign';
import { TARGETS } from './targets';

/** Few inputs, the same in every run; `npm run fuzz -- --runs 100000` sends many, with a random seed. */
const RUNS = amount(30, 100);
const SEED = 20_270_115;

describe('fuzzed input', () => {
  // A crash fails the test too: Jest reports an uncaught exception or an unhandled rejection as an error of the test.
  it.each(Object.entries(TARGETS))('%s: no 5xx, no crash, no 2xx without a good token', async (_name, open) => {
    const tally = await fuzz(open, RUNS, SEED);
    await settle();
    expect(tally).toMatchObject({ inputs: RUNS, failed: 0 });
    // Most inputs are bad. Some are good, so refusals are not due to a broken target.
    expect(tally.ok).toBeGreaterThan(0);
    expect(tally.refused + tally.unavailable).toBeGreaterThan(tally.ok);
  });
});

describe('npm run fuzz', () => {
  it('counts unhandled rejections and uncaught exceptions', () => {
    const code = `
      const { countCrashes, fuzz } = require('./test/all/fuzz/campaign');
      const fc = require('fast-check');
      async function check(isRejection) {
        if (isRejection) void Promise.reject(new Error('rejected'));
        else process.nextTick(() => { throw new Error('thrown'); });
        return [200];
      }
      const open = async () => ({ inputs: fc.constantFrom(true, false), check, async close() {} });
      countCrashes(() => fuzz(open, 10, 1)).then((crashes) => {
        console.log(JSON.stringify([crashes.length, ...new Set(crashes.map(({ message }) => message))].sort()));
      });`;
    const printed = execFileSync(process.execPath, ['-e', code], { cwd: COMPILED, encoding: 'utf8' });
    expect(JSON.parse(printed)).toEqual([10, 'rejected', 'thrown']);
  });
});

import { countCrashes, fuzz } from './fuzz/campaign';
import type { Tally } from './fuzz/campaign';
import { TARGETS } from './fuzz/targets';

/** Few, and the same ones at every run; `npm run fuzz -- --runs 100000` takes many and other ones. */
const RUNS = 60;
const SEED = 20_270_115;

describe('fuzzed input', () => {
  it.each(Object.keys(TARGETS))(
    '%s: no 5xx, no crash, no 2xx without a right token',
    async (name) => {
      const open = TARGETS[name];
      const tallies: Tally[] = [];
      const crashes = await countCrashes(async () => {
        if (open) tallies.push(await fuzz(open, RUNS, SEED));
      });
      expect(crashes).toEqual([]);
      expect(tallies).toEqual([expect.objectContaining({ inputs: RUNS, failed: 0 })]);
      // Most inputs are wrong; that some are right shows that the refusals are not for another reason.
      expect(tallies[0]?.ok).toBeGreaterThan(0);
      expect((tallies[0]?.refused ?? 0) + (tallies[0]?.unavailable ?? 0)).toBeGreaterThan(tallies[0]?.ok ?? 0);
    },
    20_000,
  );
});

import fc from 'fast-check';
import { amount } from '../support/amount';
import { play } from './model/play';
import { scripts } from './model/script';

/** More runs: `FC_RUNS=20000 npx jest test/generation/model`. */
const RUNS = Number(process.env['FC_RUNS'] ?? amount(100, 1_000));

describe('writers, a source, hints and resource servers, whatever happens between them', () => {
  it(
    'a server never accepts a token below a floor that it knows, and refuses a current one only while it cannot know',
    async () => {
      let judged = 0;
      const property = fc.asyncProperty(scripts(), async (script) => {
        judged += await play(script);
      });
      await fc.assert(property, { numRuns: RUNS });
      // A model that judges nothing would hold whatever the code does.
      expect(judged).toBeGreaterThan(RUNS * 10);
    },
    60_000 + RUNS * 100,
  );
});

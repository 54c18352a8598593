import fc from 'fast-check';
import { amount } from '../../support/amount';
import { systemAgreesWithModel } from './commands';

/** To run more: FC_RUNS=1000 npx jest --config jest.all.config.ts test/all/properties. */
const RUNS = Number(process.env['FC_RUNS'] ?? amount(6, 50));

describe('anything that users, operators and machines do, in any order', () => {
  it(
    'the token server and its APIs follow the rules of the specification',
    async () => {
      // A failure names the seed and the path that reproduce it.
      await fc.assert(systemAgreesWithModel(), { numRuns: RUNS });
    },
    240_000 + RUNS * 1_000,
  );
});

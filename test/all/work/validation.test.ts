import { validationCosts } from '../../../bench/hardening/validation';

/** The worst takes some 100 times as long; a pattern that backtracks took 100,000 times. */
const LIMIT = 500;

it(`the largest body of every operation, right or wrong, is validated in under ${LIMIT} times of what JSON.parse takes`, () => {
  const costs = validationCosts(1);
  expect(costs.length).toBeGreaterThan(20);
  expect(costs.filter(({ ofParsing }) => ofParsing >= LIMIT)).toEqual([]);
});

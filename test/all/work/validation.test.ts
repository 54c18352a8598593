import { validationCosts } from '../../../bench/hardening/validation';

it('the largest body of every operation, right or wrong, is validated in under 20 ms of CPU', () => {
  const costs = validationCosts(3);
  expect(costs.length).toBeGreaterThan(20);
  expect(costs.filter(({ cpuMs }) => cpuMs >= 20)).toEqual([]);
}, 120_000);

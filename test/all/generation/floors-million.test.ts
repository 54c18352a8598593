import { Floors } from '../../../src/generation/floors';
import { amount } from '../../support/amount';
import { HOUR, START } from '../../generation/fixtures';

/** So many that some have the same hash of 32 bits: 18 pairs of 400,000 on average. */
const COUNT = amount(400_000, 1_000_000);

it(`tells the floors of ${COUNT} clients apart, also those whose ids have the same hash`, () => {
  const floors = new Floors({ maxTokenAgeMs: HOUR, skewMs: 1_000 });
  for (let n = 0; n < COUNT; n++) floors.raise(`client-${n}`, START + n);
  let wrong = 0;
  for (let n = 0; n < COUNT; n++) if (floors.get(`client-${n}`) !== START + n) wrong++;
  expect([floors.size, wrong]).toEqual([COUNT, 0]);
});

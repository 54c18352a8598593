import { Floors } from '../../src/generation/floors';
import { amount } from '../support/amount';
import { HOUR, START } from './fixtures';

const COUNT = amount(100_000, 1_000_000);

it(`Floors holds ${COUNT} of them`, () => {
  const floors = new Floors({ maxTokenAgeMs: HOUR, skewMs: 1_000 });
  for (let n = 0; n < COUNT; n++) floors.raise(`client-${n}`, START + n);
  expect(floors.size).toBe(COUNT);
  expect(floors.get(`client-${COUNT - 1}`)).toBe(START + COUNT - 1);
  expect(floors.trim(START + HOUR + 61_000 + COUNT / 2)).toBe(COUNT / 2);
  expect(floors.get(`client-${COUNT / 2 - 1}`)).toBeUndefined();
  expect(floors.get(`client-${COUNT / 2}`)).toBe(START + COUNT / 2);
});

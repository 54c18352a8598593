import { Floors } from '../../src/generation/floors';
import { HOUR, START } from './fixtures';

it('Floors holds a million of them', () => {
  const floors = new Floors({ maxTokenAgeMs: HOUR, skewMs: 1_000 });
  for (let n = 0; n < 1_000_000; n++) floors.raise(`client-${n}`, START + n);
  expect(floors.size).toBe(1_000_000);
  expect(floors.get('client-999999')).toBe(START + 999_999);
  expect(floors.trim(START + HOUR + 61_000 + 500_000)).toBe(500_000);
  expect(floors.get('client-499999')).toBeUndefined();
  expect(floors.get('client-500000')).toBe(START + 500_000);
});

import { A, sourceWith } from '../token/keys/remote-source';

const TIMES = 100_000;

it('one unknown kid that comes 100,000 times costs one fetch, while a known key is at hand', async () => {
  const { find, fetches, answer } = await sourceWith(A);
  const begun = fetches.length;
  const atOnce = Array.from({ length: TIMES / 2 }, () => find('nowhere'));
  await answer(A);
  const reasons = new Set(await Promise.all(atOnce));
  for (let times = TIMES / 2; times < TIMES; times++) reasons.add(await find('nowhere'));
  expect(reasons).toEqual(new Set(['unknown_key']));
  expect(await find('a')).toBe('a');
  expect(fetches.length - begun).toBe(1);
});

it('100,000 unknown kids, each another one, cost two fetches within 30 s, while a known key is at hand', async () => {
  const { find, fetches, answer } = await sourceWith(A);
  const begun = fetches.length;
  const reasons = new Set<unknown>();
  for (const id of ['first', 'second']) {
    const asked = find(id);
    await answer(A);
    reasons.add(await asked);
  }
  for (let times = 2; times < TIMES; times++) reasons.add(await find(`random-${times}`));
  expect(reasons).toEqual(new Set(['unknown_key']));
  expect(await find('a')).toBe('a');
  expect(fetches.length - begun).toBe(2);
});

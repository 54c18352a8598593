import { UnknownKeys } from '../../../src/token/keys/remote-keys';
import { fakeTime } from '../../support/fake-time';

it('allows two fetches immediately and then one per 5 s', () => {
  const time = fakeTime();
  const unknown = new UnknownKeys(time.clock);
  expect(unknown.waitMs()).toBe(0);
  expect([unknown.takeFetch(), unknown.takeFetch(), unknown.takeFetch()]).toEqual([true, true, false]);
  expect(unknown.waitMs()).toBe(5_000);
  time.step(4_999);
  expect([unknown.waitMs(), unknown.takeFetch()]).toEqual([1, false]);
  time.step(1);
  expect([unknown.waitMs(), unknown.takeFetch(), unknown.takeFetch()]).toEqual([0, true, false]);
});

it('saves up two fetches, and not more', () => {
  const time = fakeTime();
  const unknown = new UnknownKeys(time.clock);
  expect([unknown.takeFetch(), unknown.takeFetch()]).toEqual([true, true]);
  time.step(86_400_000);
  expect([unknown.takeFetch(), unknown.takeFetch(), unknown.takeFetch()]).toEqual([true, true, false]);
});

it('allows at most 14 fetches in any minute', () => {
  const time = fakeTime();
  const unknown = new UnknownKeys(time.clock);
  const taken: number[] = [];
  for (let ms = 0; ms < 600_000; ms += 250, time.step(250)) if (unknown.takeFetch()) taken.push(ms);
  const inMinuteFrom = (start: number): number => taken.filter((ms) => ms >= start && ms < start + 60_000).length;
  expect(Math.max(...taken.map(inMinuteFrom))).toBeLessThanOrEqual(14);
  expect(taken).toHaveLength(2 + 119);
});

it('remembers for 30 s that the issuer does not have an id', () => {
  const time = fakeTime();
  const unknown = new UnknownKeys(time.clock);
  unknown.add('x');
  expect([unknown.has('x'), unknown.has('y')]).toEqual([true, false]);
  time.step(29_999);
  expect(unknown.has('x')).toBe(true);
  time.step(1);
  expect(unknown.has('x')).toBe(false);
});

it('forgets ids when the clock steps back, and allows the next fetch within 5 s', () => {
  const time = fakeTime();
  const unknown = new UnknownKeys(time.clock);
  unknown.add('x');
  unknown.takeFetch();
  unknown.takeFetch();
  time.step(-86_400_000);
  expect(unknown.has('x')).toBe(false);
  expect([unknown.takeFetch(), unknown.waitMs()]).toEqual([false, 5_000]);
  time.step(5_000);
  expect(unknown.takeFetch()).toBe(true);
});

it('remembers the thousand ids that came last', () => {
  const unknown = new UnknownKeys(() => 0);
  for (let index = 0; index < 5_000; index++) unknown.add(`${index}`.padEnd(1_024, 'x'));
  expect(unknown.has('3999'.padEnd(1_024, 'x'))).toBe(false);
  expect(unknown.has('4000'.padEnd(1_024, 'x'))).toBe(true);
});

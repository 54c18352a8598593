import { unknownKeys } from '../../../src/token/keys/unknown-keys';
import { fakeTime } from '../../support/fake-time';

const WINDOW_MS = 30_000;

it('two fetches are given in any 30 s, and not one more', () => {
  const time = fakeTime();
  const unknown = unknownKeys(time.clock);
  expect(unknown.takeFetch()).toBe(true);
  time.step(WINDOW_MS - 1);
  expect([unknown.takeFetch(), unknown.takeFetch()]).toEqual([true, false]);
  time.step(1);
  expect([unknown.takeFetch(), unknown.takeFetch()]).toEqual([true, false]);
});

it('an id that was asked for is unknown for 30 s, and others are not', () => {
  const time = fakeTime();
  const unknown = unknownKeys(time.clock);
  unknown.add('x');
  expect([unknown.has('x'), unknown.has('y')]).toEqual([true, false]);
  time.step(WINDOW_MS - 1);
  expect(unknown.has('x')).toBe(true);
  time.step(1);
  expect(unknown.has('x')).toBe(false);
});

it('a clock that steps back ends both: nobody knows how long ago it was', () => {
  const time = fakeTime();
  const unknown = unknownKeys(time.clock);
  unknown.add('x');
  unknown.takeFetch();
  unknown.takeFetch();
  time.step(-1);
  expect(unknown.has('x')).toBe(false);
  expect(unknown.takeFetch()).toBe(true);
});

it('memory is bounded: the thousand ids that came last are remembered', () => {
  const unknown = unknownKeys(() => 0);
  for (let index = 0; index < 5_000; index++) unknown.add(`${index}`.padEnd(1_024, 'x'));
  expect(unknown.has('3999'.padEnd(1_024, 'x'))).toBe(false);
  expect(unknown.has('4000'.padEnd(1_024, 'x'))).toBe(true);
});

import { RateStore } from '../../src/auth-server/rate-store';
import { fakeTime } from '../support/fake-time';

const windowMs = 60_000;
const hits = (store: RateStore, key: string): number => store.increment(key).totalHits;

it('counts each key on its own until its window is over, then from one again', () => {
  const time = fakeTime();
  const store = new RateStore({ windowMs, clock: time.clock });
  const { resetTime } = store.increment('a');
  expect(resetTime?.getTime()).toBe(time.clock() + windowMs);
  time.step(windowMs - 1);
  expect([hits(store, 'a'), hits(store, 'b')]).toEqual([2, 1]);
  time.step(1);
  expect([hits(store, 'a'), hits(store, 'b')]).toEqual([1, 2]);
});

it('keeps no more keys than it may, and forgets those that were not heard of for longest', () => {
  const store = new RateStore({ windowMs, maxKeys: 3 });
  for (const key of ['a', 'b', 'a', 'c', 'd']) store.increment(key);
  expect([hits(store, 'a'), hits(store, 'c'), hits(store, 'd')]).toEqual([3, 2, 2]);
  expect(hits(store, 'b')).toBe(1);
});

it('takes a hit back, never below none, and forgets a key that is reset', () => {
  const store = new RateStore({ windowMs });
  store.increment('a');
  store.decrement('a');
  store.decrement('a');
  store.decrement('never seen');
  expect(hits(store, 'a')).toBe(1);
  store.resetKey('a');
  expect(hits(store, 'a')).toBe(1);
});

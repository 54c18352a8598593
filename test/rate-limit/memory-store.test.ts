import express from 'express';
import { rateLimit } from 'express-rate-limit';
import request from 'supertest';
import { MemoryRateStore } from '../../src/rate-limit/memory-store';
import { fakeTime } from '../support/fake-time';

const windowMs = 60_000;
const hits = (store: MemoryRateStore, key: string): number => store.increment(key).totalHits;
const addressOf = (key: string): string => key.split(' ')[0]!;

it('counts each key separately until its window is over, then from one again', () => {
  const time = fakeTime();
  const store = new MemoryRateStore({ windowMs, clock: time.clock });
  store.increment('a');
  time.step(windowMs - 1);
  expect([hits(store, 'a'), hits(store, 'b')]).toEqual([2, 1]);
  expect(store.get('a')?.totalHits).toBe(2);
  time.step(1);
  expect(store.get('a')).toBeUndefined();
  expect([hits(store, 'a'), hits(store, 'b')]).toEqual([1, 2]);
});

it('a window ends a whole window after its first hit, not after its last', () => {
  const time = fakeTime();
  const store = new MemoryRateStore({ windowMs, clock: time.clock });
  for (let second = 0; second < 60; second++) {
    expect(hits(store, 'a')).toBe(second + 1);
    time.step(1_000);
  }
  expect(hits(store, 'a')).toBe(1);
});

it("tells the end of the window by the system's clock, as express-rate-limit expects", () => {
  const time = fakeTime();
  const store = new MemoryRateStore({ windowMs, clock: time.clock });
  store.increment('a');
  time.step(20_000);
  const leftMs = store.increment('a').resetTime.getTime() - Date.now();
  expect(leftMs).toBeLessThanOrEqual(40_000);
  expect(leftMs).toBeGreaterThan(35_000);
});

it('a clock that steps back does not stretch a window', () => {
  const time = fakeTime();
  const store = new MemoryRateStore({ windowMs, clock: time.clock });
  hits(store, 'a');
  hits(store, 'a');
  time.step(-3_600_000);
  expect(hits(store, 'a')).toBe(1);
  time.step(windowMs);
  expect(hits(store, 'a')).toBe(1);
});

it('20,000 made-up keys do not reset a count, and further ones of an address share one', () => {
  const store = new MemoryRateStore({ windowMs, maxKeys: 20_000, sharedKey: addressOf });
  for (let n = 0; n < 5; n++) hits(store, '192.0.2.1 pos-17');
  for (let n = 0; n < 20_000; n++) hits(store, `192.0.2.1 made-up-${n}`);
  expect(hits(store, '192.0.2.1 pos-17')).toBe(6);
  // One made-up key found no room and began the window that new keys of the address share.
  expect([hits(store, '192.0.2.1 x'), hits(store, '192.0.2.1 y'), hits(store, '192.0.2.1 z')]).toEqual([2, 3, 4]);
  expect(store.get('192.0.2.1 another')?.totalHits).toBe(4);
  expect([hits(store, '192.0.2.2 x'), hits(store, '192.0.2.2 y')]).toEqual([1, 2]);
});

it('takes a hit of a made-up key back from the window that it shares', () => {
  const store = new MemoryRateStore({ windowMs, maxKeys: 1, sharedKey: addressOf });
  for (const key of ['a 1', 'a 2', 'a 3']) hits(store, key);
  store.decrement('a 3');
  expect(hits(store, 'a 4')).toBe(2);
  expect(hits(store, 'a 1')).toBe(2);
});

it('makes room again when windows are over', () => {
  const time = fakeTime();
  const store = new MemoryRateStore({ windowMs, maxKeys: 2, sharedKey: addressOf, clock: time.clock });
  for (const key of ['a 1', 'a 2', 'a 3']) hits(store, key);
  expect(hits(store, 'a 4')).toBe(2);
  time.step(windowMs);
  expect([hits(store, 'a 3'), hits(store, 'a 4')]).toEqual([1, 1]);
});

it('holds at most twice the number of keys: the window that began first goes', () => {
  const store = new MemoryRateStore({ windowMs, maxKeys: 2, sharedKey: addressOf });
  for (const key of ['a 1', 'b 1', 'c 1', 'd 1', 'e 1']) hits(store, key);
  expect(['a 1', 'b 1', 'c', 'd', 'e'].map((key) => store.get(key)?.totalHits)).toEqual([undefined, 1, 1, 1, 1]);
});

it('takes a hit back, never below none, and forgets a key that is reset', () => {
  const store = new MemoryRateStore({ windowMs });
  store.increment('a');
  store.decrement('a');
  store.decrement('a');
  store.decrement('never seen');
  expect(hits(store, 'a')).toBe(1);
  store.resetKey('a');
  expect(hits(store, 'a')).toBe(1);
});

it('counts every key by itself where none is to be shared', () => {
  const store = new MemoryRateStore({ windowMs, maxKeys: 1 });
  expect(['a', 'b', 'b', 'c'].map((key) => hits(store, key))).toEqual([1, 1, 2, 1]);
});

it('two limiters of one request are two counts to express-rate-limit, not a mistake', async () => {
  const error = jest.spyOn(console, 'error').mockImplementation();
  try {
    const limiter = () => rateLimit({ windowMs, limit: 5, store: new MemoryRateStore({ windowMs }) });
    const app = express().use(limiter(), limiter(), (_req, res) => void res.json('ok'));
    await request(app).get('/').expect(200);
    expect(error).not.toHaveBeenCalled();
  } finally {
    error.mockRestore();
  }
});

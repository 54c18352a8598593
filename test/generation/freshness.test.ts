import { Freshness } from '../../src/generation/source-sync';

const READ_MS = 1_000;

it.each([
  [READ_MS, 'fresh', false],
  [READ_MS + 60, 'fresh', false],
  [READ_MS + 61, 'stale', false],
  [READ_MS - 1, 'stale', true],
])('at %i, a source that was read at 1000 and may be 60 ms old is %s', (nowMs, state, steppedBack) => {
  const freshness = new Freshness(60, () => nowMs);
  expect([freshness.ageMs, freshness.state, freshness.clockSteppedBack]).toEqual([undefined, 'starting', false]);
  freshness.readStartedAt(READ_MS);
  expect([freshness.ageMs, freshness.state, freshness.clockSteppedBack]).toEqual([nowMs - READ_MS, state, steppedBack]);
});

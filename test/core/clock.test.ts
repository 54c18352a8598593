import { KeyRefresh } from '../../src/token/keys/remote-keys';
import type { VerificationKey } from '../../src/token/keys/key-set';
import { systemSchedule } from '../../src/core/clock';
import { settle } from '../support/fake-time';
import { testKey } from '../support/keys';
import { recordingLogger } from '../support/log';

const KEY: VerificationKey = { keyId: 'a', algorithms: ['ES256'], key: testKey().privateKey };

it('a refresh of keys that is due later than the longest timer does not run in a loop', async () => {
  const fetches: number[] = [];
  const keys = new KeyRefresh({
    issuer: 'https://login.test',
    fetchKeys: () => Promise.resolve({ keys: [KEY], unusable: new Map() }).finally(() => fetches.push(1)),
    timeoutMs: 5_000,
    // A year: the timer of the refresh is longer than 2^31 ms, with which setTimeout fires after 1 ms.
    maxAgeMs: 365 * 86_400_000,
    staleMs: 0,
    clock: () => 1_800_000_000_000,
    schedule: systemSchedule,
    random: () => 0.5,
    logger: recordingLogger(),
  });
  await keys.ready;
  // A timer of the shortest delay that was set later: an unclamped refresh would have fired before it.
  for (let turns = 0; turns < 5; turns++) await new Promise<void>((fired) => systemSchedule(fired, 1));
  await settle();
  expect([fetches.length, keys.state()]).toEqual([1, 'fresh']);
  keys.close();
});

it('a timer that is cancelled does not fire', async () => {
  let fired = false;
  systemSchedule(() => (fired = true), 1).cancel();
  await new Promise<void>((later) => systemSchedule(later, 2));
  expect(fired).toBe(false);
});

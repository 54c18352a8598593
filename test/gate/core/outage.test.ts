import { Outage, retryAfterSeconds } from '../../../src/gate/core/outage';
import { fakeTime, settle } from '../../support/fake-time';
import { KeyRefresh } from '../../../src/gate/token/keys/remote-keys';
import type { VerificationKey } from '../../../src/gate/token/keys/key-set';
import { systemSchedule } from '../../../src/gate/core/clock';
import { testKey } from '../../support/keys';
import { recordingLogger } from '../../support/log';

describe('outage', () => {
  const BOUNDS = { firstMs: 1_000, longestMs: 8_000 };

  function scene(random = 0) {
    const time = fakeTime();
    const logged: object[] = [];
    const outage = new Outage(BOUNDS, time.clock, () => random);
    const fail = (detail: string): number => outage.fail(detail, (fields) => logged.push(fields));
    const end = (): void => outage.end((fields) => logged.push(fields));
    return { time, logged, outage, fail, end };
  }

  it('doubles the pause after each failure up to the longest one, and begins again after a recovery', () => {
    const { fail, end } = scene();
    expect([1, 2, 3, 4, 5].map(() => fail('down'))).toEqual([1_000, 2_000, 4_000, 8_000, 8_000]);
    end();
    expect(fail('down')).toBe(1_000);
  });

  it('shortens a pause by up to a half at random, so that a fleet does not retry in step', () => {
    expect(scene(0.5).fail('down')).toBe(750);
    expect(scene(1).fail('down')).toBe(500);
  });

  it('logs the first failure and the recovery with its duration, and nothing in between', async () => {
    const { time, logged, fail, end, outage } = scene();
    end();
    fail('refused');
    await time.advance(60_000);
    fail('no response');
    expect([outage.failures, outage.lastError]).toEqual([2, 'no response']);
    await time.advance(1_000);
    end();
    end();
    expect(logged).toEqual([{ detail: 'refused' }, { failures: 2, outageMs: 61_000 }]);
    expect([outage.failures, outage.lastError]).toEqual([0, undefined]);
  });

  it('knows how long the pause still is', async () => {
    const { time, fail, end, outage } = scene();
    expect(outage.waitMs).toBe(0);
    fail('down');
    await time.advance(400);
    expect(outage.waitMs).toBe(600);
    await time.advance(600);
    expect(outage.waitMs).toBe(0);
    fail('down');
    end();
    expect(outage.waitMs).toBe(0);
  });

  it('ends the pause, and counts no negative duration, when the clock steps back', () => {
    const { time, logged, fail, end, outage } = scene();
    fail('down');
    time.step(-3_600_000);
    expect(outage.waitMs).toBe(0);
    end();
    expect(logged.at(-1)).toEqual({ failures: 1, outageMs: 0 });
  });

  it('gives Retry-After in whole seconds from 1 to 30', () => {
    expect([-5, 0, 1, 1_000, 1_001, 30_000, 1e9].map(retryAfterSeconds)).toEqual([1, 1, 1, 1, 2, 30, 30]);
  });
});

describe('clock', () => {
  const KEY: VerificationKey = {
    keyId: 'a',
    algorithms: ['ES256'],
    key: testKey().privateKey,
    costUs: 50,
    tenant: undefined,
  };

  it('a refresh of keys that is due later than the longest timer does not run in a loop', async () => {
    const fetches: number[] = [];
    const keys = new KeyRefresh({
      issuer: 'https://login.test',
      fetchKeys: () => Promise.resolve({ jwks: [], keys: [KEY], unusable: new Map() }).finally(() => fetches.push(1)),
      timeoutMs: 5_000,
      // A year: the timer of the refresh is longer than 2^31 ms, with which setTimeout fires after 1 ms.
      keysMaxAgeMs: 365 * 86_400_000,
      keysStaleMs: 0,
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
});

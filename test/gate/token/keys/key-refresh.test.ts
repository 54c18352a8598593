import { FetchError } from '../../../../src/gate/net/http';
import type { VerificationKey } from '../../../../src/gate/token/keys/key-set';
import { KeyRefresh } from '../../../../src/gate/token/keys/remote-keys';
import { fakeTime, settle } from '../../../support/fake-time';
import { testKey } from '../../../support/keys';
import { recordingLogger } from '../../../support/log';

const [MAX_AGE_MS, STALE_MS] = [600_000, 3_600_000];
const ISSUER = 'https://login.test';
const KEY: VerificationKey = {
  keyId: 'a',
  algorithms: ['ES256'],
  key: testKey().privateKey,
  costUs: 50,
  tenant: undefined,
};

/** The refresh of a key set whose fetches return what `outcome` holds: keys, or a failure. */
function refreshing(options: Partial<ConstructorParameters<typeof KeyRefresh>[0]> = {}) {
  const time = fakeTime();
  const log = recordingLogger();
  const asked: AbortSignal[] = [];
  const through = {
    time,
    log,
    asked,
    outcome: [KEY] as readonly VerificationKey[] | Error | Promise<readonly VerificationKey[]>,
    /** The pauses after which something was put off until, in ms. */
    delays: [] as number[],
  };
  const keys = new KeyRefresh({
    issuer: ISSUER,
    fetchKeys: async (signal) => {
      asked.push(signal);
      if (through.outcome instanceof Error) throw through.outcome;
      return { jwks: [], keys: await through.outcome, unusable: new Map() };
    },
    timeoutMs: 5_000,
    keysMaxAgeMs: MAX_AGE_MS,
    keysStaleMs: STALE_MS,
    clock: time.clock,
    schedule: (task, delayMs) => {
      if (delayMs !== 5_000) through.delays.push(delayMs);
      return time.schedule(task, delayMs);
    },
    random: () => 0.5,
    logger: log,
    ...options,
  });
  return Object.assign(through, { keys });
}

describe('the age of a key set', () => {
  it('is unknown before the first response: there are no keys, and no failure', async () => {
    const { keys } = refreshing();
    expect(keys.status()).toEqual({ state: 'starting', keys: 0, fetches: 1 });
    expect([keys.started, keys.acceptedFetch, keys.outage.failures, keys.outage.waitMs]).toEqual([1, 0, 0, 0]);
    await keys.ready;
    await settle();
    expect(keys.status()).toEqual({ state: 'fresh', keys: 1, fetches: 1, ageMs: 0 });
    expect(keys.status()).not.toHaveProperty('lastError');
    expect([keys.started, keys.acceptedFetch, keys.inFlight]).toEqual([1, 1, undefined]);
  });

  it.each([
    [0, 'fresh'],
    [MAX_AGE_MS - 1, 'fresh'],
    [MAX_AGE_MS, 'stale'],
    [MAX_AGE_MS + STALE_MS - 1, 'stale'],
    [MAX_AGE_MS + STALE_MS, 'unavailable'],
    [-1, 'unavailable'],
  ])('of %i ms makes it %s', async (ageMs, state) => {
    const { keys, time } = refreshing();
    await keys.ready;
    time.step(ageMs);
    expect(keys.state()).toBe(state);
  });
});

it('keys that are never fresh are stale from the first moment', async () => {
  const { keys } = refreshing({ keysMaxAgeMs: 0 });
  await keys.ready;
  expect(keys.state()).toBe('stale');
});

describe('when keys are fetched', () => {
  it.each([
    [0, 420_000],
    [0.5, 480_000],
    [1, 540_000],
  ])('with random %d, they are fetched again after %i ms', async (random, delayMs) => {
    const { keys, delays } = refreshing({ random: () => random });
    await keys.ready;
    await settle();
    expect(delays.map(Math.round)).toEqual([delayMs]);
  });

  it.each([
    [0.5, true, [750, 1_500, 3_000, 6_000, 12_000, 22_500, 22_500]],
    // Without keys, every request is refused until the issuer responds.
    [0.5, false, [750, 1_500, 3_000, 3_750, 3_750]],
  ])('with random %d and keys: %j, the pauses after failures are %j ms', async (random, hasKeys, pauses) => {
    let answers = hasKeys ? 1 : 0;
    const through = refreshing({
      random: () => random,
      fetchKeys: () =>
        answers-- > 0
          ? Promise.resolve({ jwks: [], keys: [KEY], unusable: new Map() })
          : Promise.reject(new FetchError('it is down')),
    });
    await settle();
    if (hasKeys) await through.keys.refresh();
    if (hasKeys) through.delays.shift();
    await settle();
    for (const [failures, pauseMs] of pauses.entries()) {
      expect(through.delays).toEqual(pauses.slice(0, failures + 1));
      await through.time.advance(pauseMs - 1);
      expect(through.keys.outage.waitMs).toBe(1);
      through.time.step(1);
      expect(through.keys.outage.waitMs).toBe(0);
      through.time.step(-1);
      await through.time.advance(1);
    }
  });

  it('a refresh that was asked for puts the next one off: one timer waits, not two', async () => {
    const { keys, time } = refreshing();
    await keys.ready;
    await settle();
    await keys.refresh();
    await settle();
    expect(time.pending).toBe(1);
    expect(keys.started).toBe(2);
  });

  it('all that ask at the same time share one fetch', async () => {
    const { keys, asked } = refreshing();
    await Promise.all([keys.refresh(), keys.refresh(), keys.inFlight]);
    expect(asked).toHaveLength(1);
    expect(keys.inFlight).toBeUndefined();
    await keys.refresh();
    expect(asked).toHaveLength(2);
  });
});

describe('a fetch that fails', () => {
  it('at the start is told with what is known, and what it said is shown to operators', async () => {
    const through = refreshing({ fetchKeys: () => Promise.reject(new FetchError('it responded with 500')) });
    await settle();
    expect(through.log.entries).toEqual([
      {
        level: 'warn',
        fields: {
          issuer: ISSUER,
          detail: 'it responded with 500',
          advice:
            'check the issuer, and that this machine reaches it: tillgate check, of @tillgate/cli (docs/operations.md)',
        },
        message: 'the key set cannot be fetched',
      },
    ]);
    expect(through.keys.status()).toEqual({
      state: 'starting',
      keys: 0,
      fetches: 1,
      lastError: 'it responded with 500',
    });
    expect(through.keys.outage.failures).toBe(1);
  });

  it.each<[unknown, string]>([
    [new Error('a secret stands here'), 'Error'],
    [Object.assign(new TypeError('a secret'), { code: 'ERR_MODULE' }), 'TypeError (ERR_MODULE)'],
    [Object.assign(new Error('x'), { name: 'a secret', code: 'a secret' }), 'a thrown object'],
    ['a secret', 'a thrown string'],
  ])('for an unexpected reason names its kind and code, and exposes no other detail', async (error, label) => {
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- a fetch of the app can reject with anything
    const through = refreshing({ fetchKeys: () => Promise.reject(error) });
    await settle();
    expect(through.keys.status().lastError).toBe(`the key set could not be read: ${label}`);
  });

  it('leaves the good keys in use, and counts until one succeeds', async () => {
    const through = refreshing();
    const { keys, time, log } = through;
    await keys.ready;
    const good = keys.keys;
    through.outcome = new FetchError('it is down');
    await time.advance(480_000 + 750);
    expect(keys.keys).toBe(good);
    expect(log.entries.map(({ fields, message }) => [fields['ageMs'], message])).toEqual([
      [480_000, 'the key set cannot be refreshed, the last good one serves'],
    ]);
    expect(keys.outage.failures).toBe(2);
    expect([keys.started, keys.acceptedFetch]).toEqual([3, 1]);

    through.outcome = [KEY];
    await time.advance(1_500);
    expect(log.entries.slice(1)).toEqual([
      {
        level: 'info',
        fields: { issuer: ISSUER, failures: 2, outageMs: 2_250 },
        message: 'the key set of the issuer is available again',
      },
    ]);
    expect(keys.status()).toEqual({ state: 'fresh', keys: 1, fetches: 4, ageMs: 0 });
    expect([keys.acceptedFetch, keys.outage.failures, keys.outage.waitMs]).toEqual([4, 0, 0]);

    through.outcome = new FetchError('it is down');
    await time.advance(480_000);
    expect([log.entries.at(-1)?.level, keys.outage.failures, through.delays.at(-1)]).toEqual(['warn', 1, 750]);
  });
});

describe('the refusal while it cannot be told whether a key is good', () => {
  it.each([
    [0, 1],
    [2, 2],
    [4, 3],
  ])('says after %i more failures to retry after %i s, when the pause is over', async (more, seconds) => {
    const through = refreshing({ random: () => 1, fetchKeys: () => Promise.reject(new FetchError('it is down')) });
    await settle();
    for (let failures = 0; failures < more; failures++) await through.time.advance(through.delays.at(-1)!);
    expect(through.keys.unavailable()).toMatchObject({
      reason: 'keys_unavailable',
      privateDetail: 'it is down',
      retryAfterSeconds: seconds,
    });
  });
});

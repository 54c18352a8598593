import fc from 'fast-check';
import { redisGenerations } from '../../../src/generation/redis/source';
import { amount } from '../../support/amount';
import { fakeTime } from '../../support/fake-time';
import { HOUR, START, keptLog } from '../fixtures';
import { FakeRedis } from './fake';

const FLOORS = 2_300;
const MINUTE = 60_000;

/** Of a client that has a floor or has none yet; `ageMs` is how much older its generation is than the write. */
const write = fc.record({
  client: fc.integer({ min: 0, max: FLOORS + 50 }),
  ageMs: fc.oneof(fc.integer({ min: 0, max: MINUTE }), fc.integer({ min: 0, max: 7 * HOUR })),
  isAnnounced: fc.boolean(),
});
const step = fc.oneof(
  { weight: 6, arbitrary: write },
  { weight: 2, arbitrary: fc.constantFrom('poll' as const, 'minute' as const) },
  { weight: 1, arbitrary: fc.constantFrom('cut' as const, 'removal' as const) },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

describe('writes with and without messages, polls, comparisons, cuts and removals in any order', () => {
  it('leave no floor unknown: a fresh one until the next comparison, any other one until all has been read again', async () => {
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 30 }), nothingStaysUnknown), {
      numRuns: amount(8, 100),
    });
  }, 60_000);
});

async function nothingStaysUnknown(steps: Step[]): Promise<void> {
  const time = fakeTime(START);
  const redis = new FakeRedis();
  for (let n = 0; n < FLOORS; n++) redis.raise(`client-${n}`, START - 10_000 * (FLOORS - n));
  const { clock, schedule } = time;
  const client = redis.connect();
  const source = redisGenerations({ client, clock, schedule, logger: keptLog() });
  const watch = (): Promise<unknown> => source.watch(() => undefined);
  const known = new Map<string, number>();
  let sinceMs = 0;
  async function read(): Promise<void> {
    const { floors, nowMs } = await source.read(sinceMs);
    for (const [clientId, floor] of floors) known.set(clientId, Math.max(floor, known.get(clientId) ?? 0));
    sinceMs = nowMs;
  }
  function expectKnown(clientIds: Iterable<string>): void {
    const isUnknown = (clientId: string): boolean => {
      const score = redis.scores.get(clientId);
      return score !== undefined && known.get(clientId) !== Number(score);
    };
    expect([...clientIds].filter(isUnknown)).toEqual([]);
  }
  await watch();
  await read();

  const announced = new Set<string>();
  const fresh = new Set<string>();
  const late = new Set<string>();
  for (const each of steps) {
    if (each === 'cut') {
      client.cut();
      await watch();
    } else if (each === 'removal') {
      const [oldest] = [...redis.scores].sort(([, a], [, b]) => Number(a) - Number(b));
      redis.raise('\0horizon', Number(oldest?.[1]) + 1);
      if (oldest && oldest[0] !== '\0horizon') redis.scores.delete(oldest[0]);
    } else if (each === 'poll' || each === 'minute') {
      await time.advance(each === 'poll' ? 5_000 : MINUTE + 1);
      await read();
      expectKnown([...announced].filter((clientId) => !late.has(clientId) && !fresh.has(clientId)));
      if (each === 'minute') expectKnown([...fresh].filter((clientId) => !late.has(clientId)));
      announced.clear();
      if (each === 'minute') fresh.clear();
    } else {
      const clientId = `client-${each.client}`;
      const generation = clock() - each.ageMs;
      if (each.isAnnounced) redis.write(clientId, generation);
      else redis.raise(clientId, generation);
      (each.isAnnounced ? announced : each.ageMs <= MINUTE ? fresh : late).add(clientId);
    }
  }
  for (let round = 0; round < 6; round++) {
    await time.advance(MINUTE + 1);
    await read();
  }
  expectKnown([...redis.scores.keys()].filter((clientId) => clientId !== '\0horizon'));
}

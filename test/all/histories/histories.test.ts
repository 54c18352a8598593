import { runHistory } from './history';
import type { Plant } from './actors';
import type { Outcome } from './history';
import { postgresStore, redisStore } from './stores';
import type { HistoryStore } from './stores';

/** The seed decides which faults come, in which order, and when; the timing is the machine's. */
const SEED = Number(process.env['TILLGATE_TEST_SEED'] ?? Date.now() % 100_000);
const PATIENCE_MS = 120_000;

const STORES: Readonly<Record<string, () => Promise<HistoryStore>>> = {
  'Redis, appendfsync always': () => redisStore('always'),
  'Redis, appendfsync everysec': () => redisStore('everysec'),
  'PostgreSQL with a synchronous standby': () => postgresStore(),
};

async function history(name: string, changes: number, faults: number, plant?: Plant): Promise<Outcome> {
  const store = await (STORES[name] as () => Promise<HistoryStore>)();
  try {
    return await runHistory(store, { seed: SEED, changes, faults, ...(plant && { plant }) });
  } finally {
    await store.stop();
  }
}

describe(`10,000 changes and faults at random, TILLGATE_TEST_SEED=${SEED}`, () => {
  it.each([
    ['Redis, appendfsync always', 4_500, 14],
    ['Redis, appendfsync everysec', 3_000, 10],
    ['PostgreSQL with a synchronous standby', 2_500, 9],
  ])(
    '%s: none of %d changes is lost, and no floor comes back',
    async (name, changes, faults) => {
      const outcome = await history(name, changes, faults);
      expect(outcome).toMatchObject({ lost: 0, missed: 0, revived: 0 });
      expect(outcome.changes).toBeGreaterThanOrEqual(changes);
      expect(outcome.checks).toBeGreaterThan(changes);
    },
    PATIENCE_MS,
  );

  it.each<readonly [string, Plant]>([
    ['a reader that skips what moved during a gap of its watch', skipping],
    ['a publisher that acknowledges before it writes', hasty],
  ])(
    'finds %s',
    async (_, plant) => {
      const { lost, missed } = await history('Redis, appendfsync always', 3_000, 16, plant);
      expect(lost + missed).toBeGreaterThan(0);
    },
    PATIENCE_MS,
  );
});

function skipping(source: Parameters<Plant>[0], role: Parameters<Plant>[1]): ReturnType<Plant> {
  if (role === 'publisher') return source;
  let hasGap = false;
  let skipped = new Map<string, number>();
  return {
    ...source,
    watch: (wake, lost) =>
      source.watch(wake, (error) => {
        hasGap = true;
        lost?.(error);
      }),
    async read(sinceMs) {
      const snapshot = await source.read(sinceMs);
      if (hasGap) skipped = new Map((await source.read(0)).floors);
      hasGap = false;
      return { ...snapshot, floors: [...snapshot.floors].filter(([id, floor]) => skipped.get(id) !== floor) };
    },
  };
}

function hasty(source: Parameters<Plant>[0]): ReturnType<Plant> {
  return {
    ...source,
    publish(clientId, generation) {
      source.publish(clientId, generation).catch(() => undefined);
      return new Promise((resolve) => setImmediate(resolve));
    },
  };
}

import fc from 'fast-check';
import { memoryGenerations } from '../../src/generation/memory';
import type { GenerationSource } from '../../src/generation/source';
import { fakeTime } from '../support/fake-time';
import { START, reasonOf, startVerifier } from './fixtures';

/** What can happen to one change on its way: the hint, and the time that passes before the next one. */
const change = fc.record({
  clientId: fc.constantFrom('pos', 'kiosk', '__proto__', 'web'),
  generation: fc.integer({ min: START, max: START + 50 }),
  hint: fc.constantFrom('in time', 'lost', 'late', 'repeated'),
  pauseMs: fc.constantFrom(0, 0, 1, 40, 700, 6_000),
});

type Change = typeof change extends fc.Arbitrary<infer Value> ? Value : never;

describe('hints that are shuffled, repeated, late or lost', () => {
  it('cost latency only: after the next complete read every floor is right', async () => {
    const reads = fc.array(fc.constantFrom('works', 'works', 'fails', 'slow'), { maxLength: 12 });
    await fc.assert(fc.asyncProperty(fc.array(change, { maxLength: 25 }), reads, everyFloorComesRight), {
      numRuns: 60,
    });
  });
});

async function everyFloorComesRight(changes: Change[], reads: string[]): Promise<void> {
  const time = fakeTime(START);
  const store = memoryGenerations({ clock: time.clock });
  const wakes = new Set<() => void>();
  const source: GenerationSource = {
    async read(sinceMs) {
      const kind = reads.pop();
      if (kind === 'fails') throw new Error('down');
      const snapshot = await store.read(sinceMs);
      if (kind === 'slow') await new Promise<void>((resolve) => time.schedule(resolve, 900));
      return snapshot;
    },
    watch(wake) {
      wakes.add(wake);
      return Promise.resolve(() => void wakes.delete(wake));
    },
  };
  const { verifier } = startVerifier({ source, overlapMs: 0 }, time);
  const hint = (): void => wakes.forEach((wake) => wake());
  const right = new Map<string, number>();

  for (const { clientId, generation, hint: fate, pauseMs } of changes) {
    await store.publish(clientId, generation);
    right.set(clientId, Math.max(generation, right.get(clientId) ?? 0));
    if (fate === 'in time' || fate === 'repeated') hint();
    if (fate === 'repeated') hint();
    if (fate === 'late') time.schedule(hint, 1_500);
    await time.advance(pauseMs);
  }
  reads.length = 0;
  await time.advance(25_000);

  expect(verifier.status()).toMatchObject({ source: 'fresh', floors: right.size });
  for (const [clientId, floor] of right) {
    expect(reasonOf(() => verifier.recheck(clientId, floor - 1))).toBe('superseded');
    expect(reasonOf(() => verifier.recheck(clientId, floor))).toBeUndefined();
  }
  await verifier.close();
}

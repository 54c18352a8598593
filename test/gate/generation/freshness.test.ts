import fc from 'fast-check';
import { Floors } from '../../../src/gate/generation/floors';
import { Freshness } from '../../../src/gate/generation/freshness';
import type { Mark } from '../../../src/gate/generation/log';

const LIMITS = { maxStalenessMs: 5_000, maxSilenceMs: 20_000, skewMs: 1_000, lifetimeMs: 3_600_000 };
const START = 1_800_000_000_000;

const markOf = (completeMs: number, epoch = 'e1'): Mark => ({ epoch, unit: 1, completeMs, keptMs: 7_200_000 });

/** What happens to a log: time passes at the process, and a batch is read. */
const readsOf = fc.array(
  fc.record({
    stepMs: fc.integer({ min: -30_000, max: 30_000 }),
    tookMs: fc.integer({ min: 0, max: 2_000 }),
    end: fc.boolean(),
    /** How far the mark is behind the clock, and whether it moves at all. */
    lagMs: fc.option(fc.integer({ min: -5_000, max: 60_000 }), { nil: undefined }),
    epoch: fc.constantFrom('e1', 'e2'),
  }),
  { minLength: 1, maxLength: 40 },
);

describe('freshness', () => {
  it('is never fresh when the end was last reached more than maxStalenessMs ago, or after a step back', () => {
    fc.assert(
      fc.property(readsOf, fc.integer({ min: -60_000, max: 60_000 }), (reads, laterMs) => {
        const freshness = new Freshness(LIMITS, true);
        let nowMs = START;
        let readMs: number | undefined;
        for (const { stepMs, tookMs, end, lagMs, epoch } of reads) {
          const startedMs = (nowMs += stepMs);
          nowMs += tookMs;
          const mark = lagMs === undefined ? undefined : markOf(nowMs - lagMs, epoch);
          freshness.note({ mark, end, startedMs, unreadFrom: Infinity }, nowMs);
          if (end) readMs = startedMs;
        }
        const ageMs = readMs === undefined ? -1 : nowMs + laterMs - readMs;
        if (ageMs < 0 || ageMs > LIMITS.maxStalenessMs) expect(freshness.state(nowMs + laterMs)).not.toBe('fresh');
      }),
    );
  });

  it('is never fresh longer than maxSilenceMs plus the tolerance after the latest time that a mark has said', () => {
    fc.assert(
      fc.property(readsOf, (reads) => {
        const freshness = new Freshness(LIMITS, true);
        let nowMs = START;
        let saidMs = -Infinity;
        for (const { stepMs, tookMs, end, lagMs, epoch } of reads) {
          // A clock that is right: what a wrong one lengthens is the simulation's.
          const startedMs = (nowMs += Math.abs(stepMs));
          nowMs += tookMs;
          const mark = lagMs === undefined ? undefined : markOf(nowMs - Math.abs(lagMs), epoch);
          freshness.note({ mark, end, startedMs, unreadFrom: Infinity }, nowMs);
          if (end && mark) saidMs = Math.max(saidMs, mark.completeMs);
          const silentMs = nowMs - saidMs;
          if (silentMs > LIMITS.maxSilenceMs + LIMITS.skewMs) expect(freshness.state(nowMs)).not.toBe('fresh');
        }
      }),
    );
  });

  it.each([
    ['nothing was read', [], 'starting', undefined],
    ['the log has no mark', [{ mark: undefined }], 'starting', /^the log has no mark/],
    ['the publisher writes it anew', [{ mark: markOf(0) }], 'starting', 'the publisher is writing the log anew'],
    ['the first mark', [{ mark: markOf(START) }], 'starting', undefined],
    ['a mark that moves', [{ mark: markOf(START) }, { mark: markOf(START + 1) }], 'fresh', undefined],
    ['another epoch', [{ mark: markOf(START) }, { mark: markOf(START + 1, 'e2') }], 'fresh', undefined],
    ['the end was not reached', [{ mark: markOf(START), end: false }], 'starting', undefined],
    ['a mark of the future', [{ mark: markOf(START + 9_000) }], 'starting', /^the mark of the log is ahead/],
    [
      'changes are trimmed too early',
      [{ mark: markOf(START) }, { mark: { ...markOf(START + 1), keptMs: 60_000 } }],
      'starting',
      /^the log keeps changes for 1 min, this process needs those of 60 min/,
    ],
  ] as const)('%s: says its state and what is wrong', (_, batches, state, problem) => {
    const freshness = new Freshness(LIMITS, true);
    for (const batch of batches) {
      freshness.note({ end: true, startedMs: START, unreadFrom: Infinity, ...batch }, START + 1);
    }
    expect(freshness.state(START + 1)).toBe(state);
    if (problem === undefined) expect(freshness.problem).toBeUndefined();
    else expect(freshness.problem).toMatch(problem);
  });

  it('counts the log as unread from the earliest change whose time has not come', () => {
    const freshness = new Freshness(LIMITS, true);
    for (const completeMs of [START, START + 1]) {
      const batch = { mark: markOf(completeMs), end: true, startedMs: START, unreadFrom: START - 30_000 };
      freshness.note(batch, START + 1);
    }
    expect([freshness.state(START + 1), freshness.silentMs(START + 1)]).toEqual(['silent', 30_001]);
    expect(freshness.problem).toMatch(/^the log has changes of the future/);
  });
});

it('floors merge by the maximum, in any order and however often a change is read', () => {
  const changesOf = fc.array(fc.tuple(fc.constantFrom('a', 'b'), fc.integer({ min: 0, max: 9 })), { maxLength: 20 });
  fc.assert(
    fc.property(changesOf, fc.infiniteStream(fc.nat()), (changes, order) => {
      const floorsOf = (read: typeof changes): unknown => {
        const floors = new Floors({ maxTokenAgeMs: 3_600_000, skewMs: 0 });
        for (const [clientId, generation] of read) floors.raise(clientId, generation);
        return [floors.get('a'), floors.get('b')];
      };
      const shuffled = changes
        .map((change) => ({ change, key: order.next().value as number }))
        .sort((one, other) => one.key - other.key)
        .map(({ change }) => change);
      const highest = (id: string): number | undefined =>
        changes.reduce<number | undefined>((top, [by, n]) => (by === id ? Math.max(top ?? 0, n) : top), undefined);
      expect(floorsOf([...shuffled, ...changes])).toEqual([highest('a'), highest('b')]);
    }),
  );
});

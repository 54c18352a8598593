import fc from 'fast-check';
import { FloorLog } from '../../../src/generation/feed/floor-log';
import type { MovedFloor } from '../../../src/generation/feed/floor-log';
import { HOUR, START } from '../fixtures';

const pairsOf = (floors: Iterable<MovedFloor>): [string, number][] =>
  [...floors].map(({ clientId, generation }) => [clientId, generation]);

type Step =
  | { readonly kind: 'raise'; readonly clientId: string; readonly generation: number }
  | { readonly kind: 'tick' | 'told'; readonly ms: number }
  | { readonly kind: 'trim' };

const steps = fc.array(
  fc.oneof(
    {
      weight: 20,
      arbitrary: fc.record({
        kind: fc.constant<'raise'>('raise'),
        clientId: fc.integer({ min: 0, max: 40 }).map((n) => `client-${n}`),
        generation: fc.integer({ min: START - 3 * HOUR, max: START + 3 * HOUR }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom<'tick' | 'told'>('tick', 'told'), ms: fc.nat(9) }) },
    { weight: 1, arbitrary: fc.constant<Step>({ kind: 'trim' }) },
  ),
  { minLength: 100, maxLength: 2_000, size: 'max' },
);

describe('FloorLog', () => {
  it('is a map of floors by client and by the time of the move', () => {
    fc.assert(
      fc.property(steps, (given) => {
        let nowMs = START;
        let trimMs = START + HOUR;
        let horizonMs = 0;
        let toldMs = 0;
        const log = new FloorLog(() => nowMs, HOUR);
        const model = new Map<string, { generation: number; isAfterTold: boolean }>();
        for (const step of given) {
          if (step.kind === 'raise') {
            const { clientId, generation } = step;
            const moved = generation >= horizonMs && generation > (model.get(clientId)?.generation ?? -1);
            // 10,000 calls of expect() take longer than the log.
            if (log.raise(clientId, generation) !== moved) throw new Error(`raise() is not ${moved}`);
            if (!moved) continue;
            // Last in the order of a Map.
            model.delete(clientId);
            model.set(clientId, { generation, isAfterTold: true });
          } else if (step.kind === 'trim') {
            trimMs += 61_000;
            log.trimWhenDue(trimMs);
            for (const [clientId, { generation }] of model) {
              if (generation >= trimMs - HOUR) continue;
              model.delete(clientId);
              horizonMs = trimMs - HOUR;
            }
          } else {
            nowMs += step.ms;
            if (step.kind === 'tick') continue;
            toldMs = log.nowMs();
            for (const floor of model.values()) floor.isAfterTold = false;
          }
        }
        const expected = [...model].map(([clientId, { generation }]): [string, number] => [clientId, generation]);
        const whole = log.movedSince(0);
        expect([whole.count, log.size]).toEqual([model.size, model.size]);
        expect(pairsOf(whole.floors)).toEqual(expected);
        const since = log.movedSince(toldMs + 1);
        const later = expected.filter(([clientId]) => model.get(clientId)!.isAfterTold);
        expect([since.count, pairsOf(since.floors)]).toEqual([later.length, later]);
        expect(log.horizonMs).toBe(horizonMs);
      }),
      { numRuns: 15 },
    );
  });

  it('sends what there was, whatever moves or expires meanwhile', () => {
    let nowMs = START;
    const log = new FloorLog(() => nowMs, HOUR);
    const names = Array.from({ length: 5_000 }, (_, n) => `client-${n}`);
    for (const [n, name] of names.entries()) log.raise(name, START + n);
    const { count, floors } = log.movedSince(0);
    const iterator = floors[Symbol.iterator]();
    const read = [iterator.next().value as MovedFloor];
    nowMs += 1;
    for (const name of names) log.raise(name, START + 9_000);
    for (const name of names.slice(0, 4_000)) log.raise(name, START + 9_001);
    log.trimWhenDue(START + HOUR + 9_001);
    expect(log.size).toBe(4_000);
    for (let next = iterator.next(); !next.done; next = iterator.next()) read.push(next.value);
    expect(count).toBe(5_000);
    expect(pairsOf(read)).toEqual(names.map((name, n) => [name, START + n]));
  });

  it('forgets replaced moves: memory grows with the floors, not with the changes', () => {
    const log = new FloorLog(() => START, HOUR);
    for (let n = 0; n < 3_000; n++) log.raise(`client-${n}`, 1);
    for (let n = 0; n < 300_000; n++) log.raise('hot', n);
    const { count, floors } = log.movedSince(0);
    expect([count, log.size, log.revision]).toEqual([3_001, 3_001, 303_000]);
    expect(pairsOf(floors).at(-1)).toEqual(['hot', 299_999]);
    expect(log.kept).toBeLessThan(3_001 + 1_024);
    for (let n = 0; n < 3_000; n++) log.raise(`client-${n}`, 2);
    expect(log.kept).toBeLessThan(3_001 + 1_024);
  });
});

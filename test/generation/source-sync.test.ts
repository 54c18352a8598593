import { settle } from '../support/fake-time';
import { amount } from '../support/amount';
import type { GenerationSnapshot } from '../../src/generation/source';
import { ScriptedSource, START, reasonOf, startVerifier } from './fixtures';

/** A read that ends when the test says so. */
function held(source: ScriptedSource): { release(snapshot?: Partial<GenerationSnapshot>): void } {
  let resolve: (snapshot: GenerationSnapshot) => void = () => undefined;
  source.respond = () => new Promise((given) => (resolve = given));
  return { release: (snapshot) => resolve({ floors: [], nowMs: START, ...snapshot }) };
}

describe('following a source', () => {
  it('watches, then reads, then is ready', async () => {
    const source = new ScriptedSource();
    await startVerifier({ source }).verifier.ready();
    expect(source.events).toEqual(['watch', 'read']);
  });

  it('does not lose a change between the watch and the first read', async () => {
    const source = new ScriptedSource();
    const read = held(source);
    const { verifier, time } = startVerifier({ source });
    await settle();
    // The change is committed after the read has looked, so only its hint tells of it.
    source.hint();
    read.release();
    source.holds(['pos', START]);
    await verifier.ready();
    await time.advance(1);
    expect(source.asked).toHaveLength(2);
    expect(reasonOf(() => verifier.recheck('pos', START - 1))).toBe('superseded');
  });

  it('reads immediately on a hint', async () => {
    const source = new ScriptedSource();
    const { verifier } = startVerifier({ source });
    await verifier.ready();
    source.holds(['pos', START]);
    source.hint();
    await settle();
    expect(reasonOf(() => verifier.recheck('pos', START - 1))).toBe('superseded');
  });

  it('reads once more, and not more often, after a read during which hints came', async () => {
    const source = new ScriptedSource();
    const { verifier, time } = startVerifier({ source });
    await verifier.ready();
    const read = held(source);
    source.hint();
    for (let n = 0; n < 1_000; n++) source.hint();
    await settle();
    expect(source.asked).toHaveLength(2);
    source.holds();
    read.release();
    await time.advance(10);
    expect(source.asked).toHaveLength(3);
  });

  it('does not starve the process when a source hints at its own reads', async () => {
    const source = new ScriptedSource();
    source.respond = () => {
      source.hint();
      return { floors: [], nowMs: START };
    };
    const { verifier, time } = startVerifier({ source });
    await verifier.ready();
    await time.advance(20);
    expect(source.asked.length).toBeLessThanOrEqual(21);
  });

  it('pauses after a slow response for as long as it took', async () => {
    const source = new ScriptedSource();
    source.respond = () => new Promise((resolve) => time.schedule(() => resolve({ floors: [], nowMs: START }), 400));
    const { time } = startVerifier({ source });
    await time.advance(400);
    for (let n = 0; n < 16; n++) {
      source.hint();
      await time.advance(100);
    }
    expect(source.asked).toHaveLength(3);
  });

  it('reads immediately on a hint that comes long after a slow response', async () => {
    const source = new ScriptedSource();
    source.respond = () => new Promise((resolve) => time.schedule(() => resolve({ floors: [], nowMs: START }), 400));
    const { time } = startVerifier({ source });
    await time.advance(2_000);
    source.hint();
    expect(source.asked).toHaveLength(2);
  });

  it('does not read before its watch stands, also when that hints already', async () => {
    const source = new ScriptedSource();
    let stand: () => void = () => undefined;
    const watch = (wake: () => void): Promise<() => void> => {
      source.watching = () => new Promise((resolve) => (stand = resolve));
      const watching = source.watch(wake);
      wake();
      return watching;
    };
    const { verifier, time } = startVerifier({ source: { read: (sinceMs) => source.read(sinceMs), watch } });
    await settle();
    expect(source.events).toEqual(['watch']);
    stand();
    await verifier.ready();
    await time.advance(100);
    expect(source.events).toEqual(['watch', 'read']);
  });

  it('polls up to a tenth earlier, so that a fleet does not poll in step', async () => {
    const source = new ScriptedSource();
    const { verifier, time } = startVerifier({ source, random: () => 1 });
    await verifier.ready();
    await time.advance(4_499);
    expect(source.asked).toHaveLength(1);
    await time.advance(1);
    expect(source.asked).toHaveLength(2);
  });

  it('polls without any watch', async () => {
    const source = new ScriptedSource();
    const { verifier, time, log } = startVerifier({ source: { read: (sinceMs) => source.read(sinceMs) } });
    await verifier.ready();
    expect(log.lines).toEqual([]);
    await time.advance(15_000);
    expect(source.asked).toHaveLength(4);
  });

  it('polls often enough for a short bound', async () => {
    const source = new ScriptedSource();
    const { verifier, time } = startVerifier({ source, maxStalenessMs: 2_000, pollMs: 60_000 });
    await verifier.ready();
    for (let n = 0; n < 20; n++) {
      await time.advance(500);
      expect(verifier.status().source).toBe('fresh');
    }
  });

  it('asks from the last response on, with an overlap for late commits', async () => {
    const source = new ScriptedSource();
    source.nowMs = START + 7;
    const { verifier, time } = startVerifier({ source, overlapMs: 30_000 });
    await verifier.ready();
    source.nowMs = START + 5_009;
    await time.advance(10_000);
    expect(source.asked).toEqual([0, START + 7 - 30_000, START + 5_009 - 30_000]);
  });

  it('reads a source of counters whole each time', async () => {
    const source = new ScriptedSource();
    source.holds(['pos', START], ['kiosk', 41]);
    const { verifier, time } = startVerifier({ source });
    await verifier.ready();
    source.holds(['pos', START]);
    await time.advance(10_000);
    expect(source.asked).toEqual([0, 0, 0]);
    expect(reasonOf(() => verifier.recheck('kiosk', 40))).toBe('superseded');
  });

  it('reads everything immediately when the clock of the source has stepped back before `sinceMs`', async () => {
    const source = new ScriptedSource();
    source.nowMs = START + 3_600_000;
    const { verifier, time } = startVerifier({ source });
    await verifier.ready();
    source.nowMs = START;
    await time.advance(5_000);
    expect(source.asked).toEqual([0, START + 3_540_000, 0]);
    expect(verifier.status()).toMatchObject({ reads: 2, failures: 0 });
  });

  it.each<[string, unknown]>([
    [
      'an entry that is not a floor',
      {
        floors: [
          ['pos', START],
          ['kiosk', '5'],
        ],
        nowMs: START,
      },
    ],
    ['no nowMs', { floors: [['pos', START]] }],
    ['a nowMs of NaN', { floors: [['pos', START]], nowMs: NaN }],
  ])('counts a response with %s as failed, and keeps its valid floors', async (_, response) => {
    const source = new ScriptedSource();
    source.respond = () => response as GenerationSnapshot;
    const { verifier } = startVerifier({ source });
    await verifier.settled();
    expect(verifier.status()).toMatchObject({ source: 'starting', reads: 0, failures: 1 });
    expect(reasonOf(() => verifier.recheck('pos', START - 1))).toBe('superseded');
  });

  it.each<[string, unknown]>([
    ['null', null],
    ['no floors', { nowMs: START }],
  ])('counts a response of %s as failed', async (_, response) => {
    const source = new ScriptedSource();
    source.respond = () => response as GenerationSnapshot;
    const { verifier } = startVerifier({ source });
    await verifier.settled();
    expect(verifier.status()).toMatchObject({ source: 'starting', failures: 1, lastError: 'TypeError' });
  });

  it('survives a source that throws instead of rejecting', async () => {
    const thrower = (): never => {
      throw new Error('broken');
    };
    const { verifier } = startVerifier({ source: { read: thrower, watch: thrower } });
    await verifier.settled();
    expect(verifier.status()).toMatchObject({ source: 'starting', failures: 1 });
  });

  it('takes 10,000 changes of one second completely', async () => {
    const source = new ScriptedSource();
    const { verifier, time } = startVerifier({ source });
    await verifier.ready();
    const floors = new Map<string, number>();
    source.respond = () => ({ floors: [...floors], nowMs: START });
    for (let n = 0; n < 10_000; n++) {
      floors.set(`client-${n}`, START + n / 10);
      if (n % 10 === 0) floors.set('pos', START + n);
      floors.set(`client-${n}`, START + n);
      source.hint();
      if (n % 100 === 0) await time.advance(10);
    }
    await time.advance(5_000);
    // Large responses are merged in slices, one per turn of the event loop.
    for (let slice = 0; slice < 3; slice++) await settle();
    expect(verifier.status().floors).toBe(10_001);
    const isRight = ([clientId, floor]: [string, number]): boolean =>
      reasonOf(() => verifier.recheck(clientId, floor - 1)) === 'superseded';
    expect([...floors].every(isRight)).toBe(true);
  });

  it('follows a great many floors', async () => {
    const count = amount(100_000, 1_000_000);
    const source = new ScriptedSource();
    source.respond = () => ({
      floors: Array.from({ length: count }, (_, n) => [`c${n}`, START + n]),
      nowMs: START,
    });
    const { verifier } = startVerifier({ source });
    await verifier.ready();
    expect(verifier.status().floors).toBe(count);
    expect(reasonOf(() => verifier.recheck(`c${count - 1}`, START))).toBe('superseded');
  });
});

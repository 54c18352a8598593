import fc from 'fast-check';
import { EVERYTHING, Horizons as SourceHorizons } from '../../../src/generation/postgres/read';
import { START } from '../fixtures';

/** What is known about one server, whose transaction numbers are beyond all of these tests until they say otherwise. */
class Horizons {
  readonly #horizons = new SourceHorizons();
  history = 'a server';
  latest = 10_000n;

  constructor() {
    this.from(0);
  }

  note(nowMs: number, horizon: bigint, history = this.history): void {
    this.#horizons.note({ nowMs, horizon, history });
  }

  from(sinceMs: number): bigint {
    return this.#horizons.from(sinceMs, { horizon: this.latest, history: this.history });
  }
}

describe('Horizons', () => {
  it('asks for everything when nothing is known, for 0, and for a time after every read', () => {
    const horizons = new Horizons();
    expect(horizons.from(START)).toBe(EVERYTHING);
    horizons.note(START, 700n);
    expect(horizons.from(0)).toBe(EVERYTHING);
    expect(horizons.from(START + 1)).toBe(EVERYTHING);
    expect(horizons.from(START)).toBe(700n);
  });

  it('goes back to the oldest transaction of every read from that time on', () => {
    const horizons = new Horizons();
    horizons.note(START, 700n);
    horizons.note(START + 5_000, 800n);
    horizons.note(START + 10_000, 900n);
    expect(horizons.from(START + 10_000)).toBe(900n);
    expect(horizons.from(START + 6_000)).toBe(900n);
    expect(horizons.from(START + 5_000)).toBe(800n);
    expect(horizons.from(START - 60_000)).toBe(700n);
  });

  it('returns the older one of two reads that overtook each other', () => {
    const horizons = new Horizons();
    horizons.note(START, 900n);
    horizons.note(START + 5_000, 800n);
    expect(horizons.from(START)).toBe(800n);
    horizons.note(START + 9_500, 1_000n);
    horizons.note(START + 9_200, 1_100n);
    expect(horizons.from(START + 9_500)).toBe(1_000n);
  });

  it('keeps one entry per second, so that many reads stay cheap', () => {
    const horizons = new Horizons();
    for (let n = 0; n < 3_000; n++) horizons.note(START + (n % 1_000), 700n + BigInt(n));
    expect(horizons.from(START + 999)).toBe(700n);
    horizons.note(START + 1_000, 2_000n);
    expect(horizons.from(START + 1_000)).toBe(2_000n);
  });

  it('keeps the seconds before one that has several reads', () => {
    const horizons = new Horizons();
    horizons.note(START, 900n);
    horizons.note(START + 5_000, 700n);
    horizons.note(START + 10_000, 800n);
    horizons.note(START + 10_001, 810n);
    expect(horizons.from(START + 4_000)).toBe(700n);
  });

  it('asks for everything from a time that it has forgotten', () => {
    const horizons = new Horizons();
    for (let n = 0; n < 1_025; n++) horizons.note(START + n * 1_000, 700n + BigInt(n));
    expect(horizons.from(START)).toBe(EVERYTHING);
    expect(horizons.from(START + 1)).toBe(701n);
  });

  it.each<[string, (horizons: Horizons) => void]>([
    ['a server that was started later', (horizons) => (horizons.history = 'another server')],
    ['a server whose transaction numbers are lower', (horizons) => (horizons.latest = 699n)],
  ])('knows nothing of %s, for each of its readers', (_, change) => {
    const horizons = new Horizons();
    horizons.note(START, 700n);
    horizons.note(START + 4_000, 710n);
    change(horizons);
    expect(horizons.from(START)).toBe(EVERYTHING);
    horizons.latest = 800n;
    horizons.note(START + 5_000, 690n);
    // Another reader, which has not read this server yet.
    expect(horizons.from(START + 3_000)).toBe(EVERYTHING);
    expect(horizons.from(START + 4_000)).toBe(690n);
  });

  it('ignores the late end of a read of the former server', () => {
    const horizons = new Horizons();
    horizons.note(START, 700n);
    const former = horizons.history;
    horizons.history = 'another server';
    horizons.from(START);
    horizons.note(START + 1_000, 720n, former);
    expect(horizons.from(START + 1_000)).toBe(EVERYTHING);
  });
});

/** One step in the life of a server with two readers that share a source. */
type Step =
  | { readonly do: 'begin' }
  | { readonly do: 'commit' | 'roll back'; readonly which: number }
  | { readonly do: 'read'; readonly who: number; readonly overlapMs: number; readonly tookMs: number }
  | { readonly do: 'clock'; readonly byMs: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ do: 'begin' as const }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('commit', 'roll back'), which: fc.nat(9) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('read' as const),
      who: fc.nat(1),
      overlapMs: fc.constantFrom(0, 1, 1_500, 60_000),
      tookMs: fc.nat(1_200),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('clock' as const), byMs: fc.integer({ min: -3_000, max: 5_000 }) }),
  },
);

it('misses no change, in whatever order transactions commit and whatever the clock of the server does', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const horizons = new Horizons();
      const open = new Set<bigint>();
      const committed = new Set<bigint>();
      const readers = [0, 1].map(() => ({ known: new Set<bigint>(), latestMs: undefined as number | undefined }));
      let next = 700n;
      let clockMs = START;
      for (const now of steps) {
        if (now.do === 'begin') open.add(next++);
        else if (now.do === 'clock') clockMs += now.byMs;
        else if (now.do === 'read') {
          const reader = readers[now.who] as (typeof readers)[number];
          let sinceMs = reader.latestMs === undefined ? 0 : Math.max(0, reader.latestMs - now.overlapMs);
          // What every reader does when the clock of a source has stepped back.
          if (clockMs < sinceMs) sinceMs = 0;
          const from = horizons.from(sinceMs);
          const horizon = [...open].reduce((oldest, number) => (number < oldest ? number : oldest), next);
          for (const number of committed) if (number >= from) reader.known.add(number);
          reader.latestMs = clockMs;
          horizons.note(clockMs, horizon);
          clockMs += now.tookMs;
          expect([...committed].filter((number) => !reader.known.has(number))).toEqual([]);
        } else {
          const number = [...open][now.which % Math.max(1, open.size)];
          if (number === undefined) continue;
          open.delete(number);
          if (now.do === 'commit') committed.add(number);
        }
      }
    }),
    { numRuns: 500 },
  );
});

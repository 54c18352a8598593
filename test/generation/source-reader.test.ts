import { systemClock, systemSchedule } from '../../src/core/clock';
import { Floors } from '../../src/generation/floors';
import { SourceReader } from '../../src/generation/source-reader';
import type { Floor, GenerationSnapshot, GenerationSource, TakePage } from '../../src/generation/source';
import { settle } from '../support/fake-time';
import { ScriptedSource, START, reasonOf, startVerifier } from './fixtures';

const LIFETIME_MS = 86_400_000 + 10_000 + 60_000;

/** A source that hands over its floors in pages, when the test says so. */
class PagedSource implements GenerationSource {
  page: TakePage = () => Promise.resolve();
  end: (snapshot: GenerationSnapshot) => void = () => undefined;
  fail: (error: unknown) => void = () => undefined;

  read(_sinceMs: number, takePage?: TakePage): Promise<GenerationSnapshot> {
    this.page = (floors) => takePage?.(floors) ?? Promise.resolve();
    return new Promise((resolve, reject) => {
      this.end = resolve;
      this.fail = reject;
    });
  }
}

function open(source: GenerationSource) {
  const floors = new Floors({ maxTokenAgeMs: 86_400_000, skewMs: 10_000 });
  const reader = new SourceReader({ source, floors, timeoutMs: 5_000, overlapMs: 60_000, schedule: systemSchedule });
  return { floors, reader };
}

describe('reading a source', () => {
  it('asks from where the source says, if it says so', async () => {
    const source = new ScriptedSource();
    source.respond = () => ({ floors: [], nowMs: START, resumeMs: START - 5 });
    const { reader } = open(source);
    await reader.read();
    await reader.read();
    expect(source.asked).toEqual([0, START - 5]);
  });

  it('asks once from the time at which the source stands', async () => {
    const source = new ScriptedSource();
    source.respond = () => ({ floors: [], nowMs: START, resumeMs: START });
    const { reader } = open(source);
    await reader.read();
    await reader.read();
    expect(source.asked).toEqual([0, START]);
  });

  it('never asks from a time before the epoch', async () => {
    const source = new ScriptedSource();
    source.nowMs = 1_000;
    const { reader } = open(source);
    await reader.read();
    await reader.read();
    expect(source.asked).toEqual([0, 0]);
  });

  it('asks for everything again when told to start over', async () => {
    const source = new ScriptedSource();
    const { reader } = open(source);
    await reader.read();
    reader.startOver();
    await reader.read();
    expect(source.asked).toEqual([0, 0]);
  });

  it('refuses a response whose resumeMs is not a time, and keeps its floors', async () => {
    const source = new ScriptedSource();
    source.respond = () => ({ floors: [['pos', START]], nowMs: START, resumeMs: NaN });
    const { floors, reader } = open(source);
    await expect(reader.read()).rejects.toThrow('has no nowMs');
    expect(floors.get('pos')).toBe(START);
  });

  it('merges every valid floor, and says how many entries are not floors', async () => {
    const source = new ScriptedSource();
    const entries = [
      ['a', 1],
      ['b', -1],
      ['c', 1.5],
      ['d', '5'],
      [5, 5],
      ['e'],
      null,
      'ff',
      ['g', 2 ** 53],
      ['h', 2],
      ['i', 3, 4],
    ];
    source.respond = () => ({ floors: entries, nowMs: START }) as unknown as GenerationSnapshot;
    const { floors, reader } = open(source);
    await expect(reader.read()).rejects.toThrow('has 9 entries that are not [client id, generation]');
    expect([floors.size, floors.get('a'), floors.get('h')]).toEqual([2, 1, 2]);
  });

  it.each([
    ['a counter', 1e12 - 1, 0],
    ['a time', 1e12, START - 60_000],
  ])('after %s (%d) asks from %d', async (_what, generation, sinceMs) => {
    const source = new ScriptedSource();
    source.holds(['pos', generation]);
    const { reader } = open(source);
    await reader.read();
    await reader.read();
    expect(source.asked).toEqual([0, sinceMs]);
  });

  it.each(['resumeMs', 'completeFromMs', 'ageMs'])('ignores an inherited %s', async (name) => {
    const source = new ScriptedSource();
    source.respond = () => Object.assign(Object.create({ [name]: NaN }) as object, { floors: [], nowMs: START });
    const { reader } = open(source);
    await expect(reader.read()).resolves.toBe(0);
  });

  it('refuses a store that removes floors which this process still needs', async () => {
    const source = new ScriptedSource();
    let keptMs = LIFETIME_MS;
    source.respond = () => ({ floors: [['pos', START]], nowMs: START, completeFromMs: START - keptMs });
    const { floors, reader } = open(source);
    await expect(reader.read()).resolves.toBe(0);
    keptMs = LIFETIME_MS - 60_000;
    await expect(reader.read()).rejects.toThrow('keeps floors for 1440 min, and this process needs those of 1441 min');
    expect(floors.get('pos')).toBe(START);
  });

  it('returns the age of the floors of a source that follows another one', async () => {
    const source = new ScriptedSource();
    source.respond = () => ({ floors: [], nowMs: START, ageMs: 700 });
    await expect(open(source).reader.read()).resolves.toBe(700);
    source.respond = () => ({ floors: [], nowMs: START, ageMs: -700 });
    await expect(open(source).reader.read()).resolves.toBe(0);
  });

  it('overlaps reads by the age of the floors too: the next response may come from another relay', async () => {
    const source = new ScriptedSource();
    source.respond = () => ({ floors: [], nowMs: START, ageMs: 700 });
    const { reader } = open(source);
    await reader.read();
    await reader.read();
    expect(source.asked).toEqual([0, START - 60_700]);
  });

  it('counts the age of the floors as staleness', async () => {
    const source = new ScriptedSource();
    source.respond = () => ({ floors: [], nowMs: START, ageMs: 700 });
    const { verifier } = startVerifier({ source });
    await settle();
    expect(verifier.status()).toMatchObject({ source: 'fresh', ageMs: 700 });
  });

  it('merges pages as they come, each with its own time limit', async () => {
    const source = new PagedSource();
    const { verifier, time } = startVerifier({ source, readTimeoutMs: 1_000 });
    for (let page = 0; page < 3; page++) {
      await time.advance(900);
      await source.page([[`c${page}`, START]]);
      expect(verifier.status()).toMatchObject({ source: 'starting', floors: page + 1, failures: 0 });
    }
    source.end({ floors: [['last', START]], nowMs: START });
    await settle();
    expect(verifier.status()).toMatchObject({ source: 'fresh', floors: 4 });
  });

  it('counts a read as failed when the next page does not come in time', async () => {
    const source = new PagedSource();
    const { verifier, time } = startVerifier({ source, readTimeoutMs: 1_000 });
    await time.advance(900);
    await source.page([['pos', START]]);
    await time.advance(1_000);
    expect(verifier.status()).toMatchObject({ floors: 1, failures: 1, lastError: 'no response within 1000 ms' });
  });

  it('refuses a read with an invalid entry in a page', async () => {
    const source = new PagedSource();
    const { reader } = open(source);
    const reading = reader.read();
    const refused = expect(reading).rejects.toThrow('has 1 entries that are not [client id, generation]');
    await source.page([['pos', START], ['bad'] as unknown as Floor]).catch((error: unknown) => source.fail(error));
    await refused;
  });

  it('yields to the event loop after every 5,000 floors', async () => {
    const source = new ScriptedSource();
    source.respond = () => ({ floors: Array.from({ length: 10_001 }, (_, n) => [`c${n}`, START]), nowMs: START });
    const { floors, reader } = open(source);
    const reading = reader.read();
    const sizes = [];
    for (let turn = 0; turn < 4; turn++) {
      await settle();
      sizes.push(floors.size);
    }
    await reading;
    expect(sizes).toContain(5_000);
    expect(sizes).toContain(10_000);
    expect(floors.size).toBe(10_001);
  });

  it('merges a response that comes after the time limit, and still counts the read as failed', async () => {
    const source = new ScriptedSource();
    let respond: (snapshot: GenerationSnapshot) => void = () => undefined;
    source.respond = () => new Promise((resolve) => (respond = resolve));
    const { verifier, time } = startVerifier({ source, readTimeoutMs: 1_000 });
    await time.advance(1_000);
    expect(verifier.status()).toMatchObject({ failures: 1, lastError: 'no response within 1000 ms' });
    respond({ floors: [['pos', START]], nowMs: START });
    await settle();
    expect(reasonOf(() => verifier.recheck('pos', START - 1))).toBe('superseded');
    expect(verifier.status().source).toBe('starting');
  });
});

it('a pollMs beyond the longest timer polls rarely, not every millisecond', async () => {
  const source = new ScriptedSource();
  const { verifier } = startVerifier({
    source,
    pollMs: 3e9,
    maxStalenessMs: 1e10,
    clock: systemClock,
    schedule: systemSchedule,
  });
  await verifier.ready();
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(source.asked).toEqual([0]);
  await verifier.close();
});

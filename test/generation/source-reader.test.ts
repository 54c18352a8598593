import { systemClock, systemSchedule } from '../../src/core/clock';
import { Floors } from '../../src/generation/floors';
import { SourceReader } from '../../src/generation/source-reader';
import type { GenerationSnapshot } from '../../src/generation/source';
import { settle } from '../support/fake-time';
import { ScriptedSource, START, reasonOf, startVerifier } from './fixtures';

function open(source: ScriptedSource) {
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

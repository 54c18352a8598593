import { AssertionError } from 'node:assert';
import { generationSourceCases } from '../../src/testing/index';
import { planted } from './planted-source';
import type { PlantedSource } from './planted-source';

/** Rejections of close() are passed on unchanged. */
const CLOSE = 'close() can be repeated';

type Plant = (source: PlantedSource) => void;

/** A fault, how to plant it, and part of the name of the case that must notice it. */
const FAULTS: readonly [fault: string, plant: Plant, foundBy: string][] = [
  ['the last write wins', (source) => void (source.isHigher = () => true), 'a lower number changes nothing'],
  [
    'a write is lost to another one at the same time',
    (source) => {
      const isHigher = source.isHigher;
      let seen = 0;
      source.isHigher = (generation, known) => isHigher(generation, known) && ++seen < 4;
    },
    'publishes of one client at the same time',
  ],
  [
    'a move at exactly the requested time is left out',
    (source) => void (source.hasMoved = ({ changedMs }, sinceMs) => sinceMs === 0 || changedMs > sinceMs),
    'a read since a time',
  ],
  [
    'numbers are taken for the times of changes',
    (source) => void (source.hasMoved = ({ generation }, sinceMs) => generation >= sinceMs),
    'a read since a time',
  ],
  [
    'a watch makes reads forget',
    (source) => {
      const hasMoved = source.hasMoved;
      source.hasMoved = (change, sinceMs) => sinceMs === 0 || (source.wakes.size === 0 && hasMoved(change, sinceMs));
    },
    'a watched source returns everything',
  ],
  [
    'read(0) returns only what is new since the last read',
    (source) => {
      const told = new Map<string, number>();
      source.hasMoved = (change, sinceMs) => sinceMs > 0 || !told.has(`${change.generation}`);
      const snapshot = source.snapshot;
      source.snapshot = (floors, sinceMs) => {
        floors.forEach(([, generation]) => told.set(`${generation}`, sinceMs));
        return snapshot(floors, sinceMs);
      };
    },
    'read(0) is complete',
  ],
  ['nowMs is not a number', (source) => void (source.nowMs = NaN), 'nowMs is a time in ms'],
  ['nowMs is in seconds', (source) => void (source.nowMs = 1_800_000_000), 'nowMs is a time in ms'],
  [
    'nowMs steps back',
    (source) => void (source.snapshot = (floors) => ({ floors, nowMs: source.nowMs-- })),
    'nowMs is a time in ms that never steps back',
  ],
  [
    'numbers are kept in 32 bits',
    (source) => {
      const keep = source.keep;
      source.keep = (clientId, generation) => keep(clientId, Math.fround(generation));
    },
    'counters and the largest numbers',
  ],
  [
    'counters are dropped',
    (source) => {
      const keep = source.keep;
      source.keep = (clientId, generation) => (generation < 1e12 ? undefined : keep(clientId, generation));
    },
    'counters and the largest numbers',
  ],
  [
    'client ids are trimmed',
    (source) => {
      const keep = source.keep;
      source.keep = (clientId, generation) => keep(clientId.trim(), generation);
    },
    'odd client ids',
  ],
  [
    'client ids are keys of an object',
    (source) => {
      const snapshot = source.snapshot;
      source.snapshot = (floors, sinceMs) => {
        const object: Record<string, number> = {};
        for (const [clientId, generation] of floors) object[clientId] = generation;
        return snapshot(Object.entries(object), sinceMs);
      };
    },
    'odd client ids',
  ],
  [
    'a read ends after 5,000 floors',
    (source) => {
      const snapshot = source.snapshot;
      source.snapshot = (floors, sinceMs) => snapshot(floors.slice(0, 5_000), sinceMs);
    },
    '10000 changes arrive complete',
  ],
  [
    'publish resolves before it has written',
    (source) => {
      const keep = source.keep;
      source.keep = (clientId, generation) => void setImmediate(() => keep(clientId, generation));
    },
    'a floor whose publish has resolved',
  ],
  [
    'publish accepts anything',
    (source) => void (source.check = () => undefined),
    'publish refuses anything but a floor',
  ],
  ['a watch never wakes', (source) => void (source.hint = () => undefined), 'an established watch wakes'],
  [
    'a watch wakes once and then never again',
    (source) => {
      const hint = source.hint;
      source.hint = () => {
        hint();
        source.wakes.clear();
      };
    },
    'an established watch wakes',
  ],
  ['a watch cannot be stopped', (source) => void (source.stop = () => undefined), 'a watch that was stopped'],
  ['stopping one watch stops all', (source) => void (source.stop = () => source.wakes.clear()), 'the others go on'],
  ['a closed source still wakes', (source) => void (source.end = () => Promise.resolve()), CLOSE],
  ['close() hangs', (source) => void (source.end = () => new Promise(() => undefined)), CLOSE],
  [
    'a second close() throws',
    (source) => {
      let closed = 0;
      source.end = () => (++closed > 1 ? Promise.reject(new Error('closed')) : Promise.resolve());
    },
    CLOSE,
  ],
  [
    'a read after a cut is empty',
    (source) => {
      source.cut = () => {
        source.snapshot = (_, sinceMs) => ({ floors: [], nowMs: source.nowMs + sinceMs * 0 });
        return Promise.resolve();
      };
    },
    'a source that was cut off',
  ],
  [
    'a cut ends the watch silently',
    (source) => void (source.cut = () => Promise.resolve(source.wakes.clear())),
    'a source that was cut off',
  ],
];

/** Runs the cases whose name contains a text, and returns their failures. */
async function failuresOf(plant: Plant, words = ''): Promise<unknown[]> {
  const failures: unknown[] = [];
  const cases = generationSourceCases({ create: () => Promise.resolve(planted(plant)), timeoutMs: 30 });
  const chosen = cases.filter(({ name }) => name.includes(words));
  expect(chosen).not.toEqual([]);
  for (const { run } of chosen) await run().catch((error: unknown) => failures.push(error));
  return failures;
}

describe('generationSourceCases()', () => {
  it('passes for a plain, correct source', async () => {
    expect(await failuresOf(() => undefined)).toEqual([]);
  });

  it.each(FAULTS)('notices that %s', async (_, plant, foundBy) => {
    const [failure] = await failuresOf(plant, foundBy);
    expect(failure).toHaveProperty('message');
    if (foundBy !== CLOSE) expect(failure).toBeInstanceOf(AssertionError);
  });
});

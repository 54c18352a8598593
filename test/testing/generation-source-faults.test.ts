import { AssertionError } from 'node:assert';
import { generationSourceCases } from '../../src/testing/index';
import { planted } from './planted-source';
import type { PlantedSource } from './planted-source';

/** What close() rejects with comes out as it is. */
const CLOSE = 'close() can be repeated';

type Plant = (source: PlantedSource) => void;

/** A fault, how it is planted, and words of the case that must find it. */
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
    'what moved at the very time is left out',
    (source) => void (source.hasMoved = ({ changedMs }, sinceMs) => sinceMs === 0 || changedMs > sinceMs),
    'a read from a time on',
  ],
  [
    'numbers are taken for the times of changes',
    (source) => void (source.hasMoved = ({ generation }, sinceMs) => generation >= sinceMs),
    'a read from a time on',
  ],
  [
    'a watch makes reads forget',
    (source) => {
      const hasMoved = source.hasMoved;
      source.hasMoved = (change, sinceMs) => sinceMs === 0 || (source.wakes.size === 0 && hasMoved(change, sinceMs));
    },
    'a watched source answers everything',
  ],
  [
    'read(0) answers what is new since the last read',
    (source) => {
      const told = new Map<string, number>();
      source.hasMoved = (change, sinceMs) => sinceMs > 0 || !told.has(`${change.generation}`);
      const answer = source.answer;
      source.answer = (floors, sinceMs) => {
        floors.forEach(([, generation]) => told.set(`${generation}`, sinceMs));
        return answer(floors, sinceMs);
      };
    },
    'read(0) is complete',
  ],
  ['nowMs is no number', (source) => void (source.nowMs = NaN), 'nowMs is a time in ms'],
  ['nowMs is in seconds', (source) => void (source.nowMs = 1_800_000_000), 'nowMs is a time in ms'],
  [
    'nowMs steps back',
    (source) => void (source.answer = (floors) => ({ floors, nowMs: source.nowMs-- })),
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
      const answer = source.answer;
      source.answer = (floors, sinceMs) => {
        const object: Record<string, number> = {};
        for (const [clientId, generation] of floors) object[clientId] = generation;
        return answer(Object.entries(object), sinceMs);
      };
    },
    'odd client ids',
  ],
  [
    'an answer ends after 5,000 floors',
    (source) => {
      const answer = source.answer;
      source.answer = (floors, sinceMs) => answer(floors.slice(0, 5_000), sinceMs);
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
  ['publish takes anything', (source) => void (source.check = () => undefined), 'publish refuses what is no floor'],
  ['a watch never wakes', (source) => void (source.hint = () => undefined), 'a watch that stands wakes'],
  [
    'a watch wakes once and then never again',
    (source) => {
      const hint = source.hint;
      source.hint = () => {
        hint();
        source.wakes.clear();
      };
    },
    'a watch that stands wakes',
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
    'after a cut an answer is empty',
    (source) => {
      source.cut = () => {
        source.answer = (_, sinceMs) => ({ floors: [], nowMs: source.nowMs + sinceMs * 0 });
        return Promise.resolve();
      };
    },
    'a source that was cut off',
  ],
  [
    'a cut ends the watch without a word',
    (source) => void (source.cut = () => Promise.resolve(source.wakes.clear())),
    'a source that was cut off',
  ],
];

/** Runs the cases whose name has these words, and answers how they failed. */
async function failuresOf(plant: Plant, words = ''): Promise<unknown[]> {
  const failures: unknown[] = [];
  const cases = generationSourceCases({ create: () => Promise.resolve(planted(plant)), timeoutMs: 30 });
  const chosen = cases.filter(({ name }) => name.includes(words));
  expect(chosen).not.toEqual([]);
  for (const { run } of chosen) await run().catch((error: unknown) => failures.push(error));
  return failures;
}

describe('generationSourceCases()', () => {
  it('finds nothing wrong with a plain, correct source', async () => {
    expect(await failuresOf(() => undefined)).toEqual([]);
  });

  it.each(FAULTS)('finds that %s', async (_, plant, foundBy) => {
    const [failure] = await failuresOf(plant, foundBy);
    expect(failure).toHaveProperty('message');
    if (foundBy !== CLOSE) expect(failure).toBeInstanceOf(AssertionError);
  });
});

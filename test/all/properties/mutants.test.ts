import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import type * as clientModule from '../../../src/cli/auth-server/client';
import type { ClientRow } from '../../../src/cli/auth-server/store';
import type { Change, GenerationSource } from '../../../src/gate/generation';
import type * as commandsModule from './commands';
import type { Faults } from './system';

const actual = jest.requireActual<typeof clientModule>('../../../src/cli/auth-server/client');

/** The rules of client credentials, of which one at a time is replaced by a wrong one. */
const rules = { ...actual };
jest.doMock('../../../src/cli/auth-server/client', () => ({
  ...actual,
  registered: (...args: Parameters<typeof actual.registered>) => rules.registered(...args),
  patched: (...args: Parameters<typeof actual.patched>) => rules.patched(...args),
  rotated: (...args: Parameters<typeof actual.rotated>) => rules.rotated(...args),
  withNewGeneration: (...args: Parameters<typeof actual.withNewGeneration>) => rules.withNewGeneration(...args),
  deleted: (...args: Parameters<typeof actual.deleted>) => rules.deleted(...args),
}));

/** The same sequences each time: a mutant that lives today lives tomorrow. */
const SEED = 7_519;
const RUNS = 60;

// Loaded only now, so that it meets the rules above.
const { systemAgreesWithModel } = jest.requireActual<typeof commandsModule>('./commands');

afterEach(() => void Object.assign(rules, actual));

async function isFound(faults: Faults = {}): Promise<boolean> {
  const options = { numRuns: RUNS, seed: SEED, endOnFailure: true };
  return (await fc.check(systemAgreesWithModel(faults), options)).failed;
}

const keepGeneration = (before: ClientRow, after: ClientRow): ClientRow => {
  return { ...after, generation: before.generation };
};

type Patch = Parameters<typeof actual.patched>[1];

/** A patch whose outcome is another one. */
function patching(
  edit: (row: ClientRow, after: ClientRow, patch: Patch, nowMs: number) => ClientRow,
): Partial<typeof actual> {
  return { patched: (row, patch, nowMs) => edit(row, actual.patched(row, patch, nowMs), patch, nowMs) };
}

const rotating = (changes: Partial<Parameters<typeof actual.rotated>[2]>): Partial<typeof actual> => ({
  rotated: (row, secret, options, nowMs) => actual.rotated(row, secret, { ...options, ...changes }, nowMs),
});

const WRONG_RULES: readonly (readonly [string, Partial<typeof actual>])[] = [
  [
    'a change of the Description that discards nothing',
    patching((row, after) => (after.description === row.description ? after : keepGeneration(row, after))),
  ],
  [
    'a Description that is compared without its white space',
    patching((row, after) => {
      const isSame = after.description.trim() === row.description.trim() && after.scopes === row.scopes;
      return isSame ? keepGeneration(row, after) : after;
    }),
  ],
  [
    'the same Description taken for a change',
    patching((row, after, patch, nowMs) =>
      after === row && patch.description !== undefined ? actual.withNewGeneration(row, nowMs) : after,
    ),
  ],
  [
    'a scope that is taken away, and tokens that keep it',
    patching((row, after, patch) => (patch.scopes ? keepGeneration(row, after) : after)),
  ],
  [
    'a further scope that discards tokens',
    patching((row, after, patch, nowMs) => {
      const isFurther = patch.scopes && after !== row && after.generation === row.generation;
      return isFurther ? actual.withNewGeneration(after, nowMs) : after;
    }),
  ],
  [
    'a client that is disabled, and tokens that live on',
    patching((row, after, patch) => (patch.disabled ? keepGeneration(row, after) : after)),
  ],
  ['a rotation that discards tokens although it was asked not to', rotating({ keepTokens: false })],
  ['a rotation that keeps tokens unasked', rotating({ keepTokens: true })],
  ['a rotation that leaves the secrets before', rotating({ revokePrevious: false })],
  ['a rotation that ends the previous secret immediately', rotating({ revokePrevious: true })],
  [
    'a generation that is the time, used twice in the same millisecond',
    { withNewGeneration: (row, nowMs) => ({ ...actual.withNewGeneration(row, nowMs), generation: nowMs }) },
  ],
  [
    'an id that begins anew after it was deleted',
    { registered: (client, secret, _clients, nowMs) => actual.registered(client, secret, new Map(), nowMs) },
  ],
  [
    'a deleted client whose tokens live on',
    { deleted: (row, nowMs) => ({ ...actual.deleted(row, nowMs), generation: row.generation }) },
  ],
];

describe('the properties find', () => {
  it.each(WRONG_RULES)('%s', async (_what, wrong) => {
    Object.assign(rules, wrong);
    expect(await isFound()).toBe(true);
  });

  const faulty = (change: (source: GenerationSource) => Partial<GenerationSource>): Faults => ({
    source: (source) => ({ ...source, ...change(source) }),
  });

  /** Appends something else. */
  const appending = (edit: (changes: readonly Change[]) => readonly Change[]): Faults =>
    faulty((source) => ({ append: async (changes, unit) => source.append?.(edit(changes), unit) }));

  /** Reads something else; `count` is the number of the batch. */
  const reading = (edit: (changes: readonly Change[], count: number) => readonly Change[]): Faults =>
    faulty((source) => ({
      reader() {
        const reader = source.reader();
        let count = 0;
        return {
          ...reader,
          async next(waitMs) {
            const batch = await reader.next(waitMs);
            return { ...batch, changes: edit(batch.changes, ++count) };
          },
        };
      },
    }));

  it.each([
    ['a log that drops changes', appending(() => [])],
    ['a log that knows one client only', appending((changes) => changes.filter(([id]) => id === 'till'))],
    [
      'a log that misses the last change',
      appending((changes) => changes.map(([id, generation]) => [id, generation - 1] as const)),
    ],
    ['reads that come back empty', reading(() => [])],
    ['reads that leave out what follows the first one', reading((changes, count) => (count === 1 ? changes : []))],
    ['APIs that look at no generation', { generation: false as const }],
  ])('%s', async (_what, faults) => {
    expect(await isFound(faults)).toBe(true);
  });

  it('a state that is put back to what it was one stop before', async () => {
    const kept = new Map<string, string>();
    const whileStopped = (dataDir: string): void => {
      const path = join(dataDir, 'state.json');
      const before = kept.get(path);
      kept.set(path, readFileSync(path, 'utf8'));
      if (before !== undefined) writeFileSync(path, before);
    };
    expect(await isFound({ whileStopped })).toBe(true);
  });

  it('nothing where nothing is planted, in the same sequences', async () => {
    expect(await isFound()).toBe(false);
  });
});

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import type * as clientModule from '../../../src/auth-server/clients/client';
import type { ClientRow } from '../../../src/auth-server/storage/state';
import type { GenerationSource } from '../../../src/generation';
import type * as commandsModule from '../../properties/commands';
import type { Faults } from '../../properties/system';

const actual = jest.requireActual<typeof clientModule>('../../../src/auth-server/clients/client');

/** The rules of client credentials, of which one at a time is replaced by a wrong one. */
const rules = { ...actual };
jest.doMock('../../../src/auth-server/clients/client', () => ({
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
const { systemAgreesWithModel } = jest.requireActual<typeof commandsModule>('../../properties/commands');

afterEach(() => void Object.assign(rules, actual));

async function isFound(faults: Faults = {}): Promise<boolean> {
  const options = { numRuns: RUNS, seed: SEED, endOnFailure: true };
  return (await fc.check(systemAgreesWithModel(faults), options)).failed;
}

const keepGeneration = (before: ClientRow, after: ClientRow): ClientRow => {
  return { ...after, generation: before.generation, movedAt: before.movedAt };
};

const WRONG_RULES: readonly (readonly [string, Partial<typeof actual>])[] = [
  [
    'a change of the Description that discards nothing',
    {
      patched(row, patch, context) {
        const after = actual.patched(row, patch, context);
        return after.description === row.description ? after : keepGeneration(row, after);
      },
    },
  ],
  [
    'a Description that is compared without its white space',
    {
      patched(row, patch, context) {
        const after = actual.patched(row, patch, context);
        return after.description.trim() === row.description.trim() && after.scopes === row.scopes
          ? keepGeneration(row, after)
          : after;
      },
    },
  ],
  [
    'the same Description taken for a change',
    {
      patched(row, patch, context) {
        const after = actual.patched(row, patch, context);
        return after === row && patch.description !== undefined ? actual.withNewGeneration(row, context) : after;
      },
    },
  ],
  [
    'a scope that is taken away, and tokens that keep it',
    {
      patched(row, patch, context) {
        const after = actual.patched(row, patch, context);
        return patch.scopes ? keepGeneration(row, after) : after;
      },
    },
  ],
  [
    'a further scope that discards tokens',
    {
      patched(row, patch, context) {
        const after = actual.patched(row, patch, context);
        return patch.scopes && after !== row && after.generation === row.generation
          ? actual.withNewGeneration(after, context)
          : after;
      },
    },
  ],
  [
    'a client that is disabled, and tokens that live on',
    {
      patched(row, patch, context) {
        const after = actual.patched(row, patch, context);
        return patch.disabled ? keepGeneration(row, after) : after;
      },
    },
  ],
  [
    'a rotation that discards tokens although it was asked not to',
    {
      rotated: (row, secret, options, context) =>
        actual.rotated(row, secret, { ...options, keepTokens: false }, context),
    },
  ],
  [
    'a rotation that keeps tokens unasked',
    {
      rotated: (row, secret, options, context) =>
        actual.rotated(row, secret, { ...options, keepTokens: true }, context),
    },
  ],
  [
    'a rotation that leaves the secrets before',
    {
      rotated: (row, secret, options, context) =>
        actual.rotated(row, secret, { ...options, revokePrevious: false }, context),
    },
  ],
  [
    'a rotation that ends the previous secret immediately',
    {
      rotated: (row, secret, options, context) =>
        actual.rotated(row, secret, { ...options, revokePrevious: true }, context),
    },
  ],
  [
    'a generation that is the time, used twice in the same millisecond',
    { withNewGeneration: (row, context) => ({ ...actual.withNewGeneration(row, context), generation: context.nowMs }) },
  ],
  [
    'an id that begins anew after it was deleted',
    { registered: (client, secret, _before, context) => actual.registered(client, secret, undefined, context) },
  ],
  [
    'a deleted client whose tokens live on',
    { deleted: (row, context) => ({ ...actual.deleted(row, context), generation: row.generation }) },
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

  it.each([
    ['a source that drops floors', faulty(() => ({ publish: () => Promise.resolve() }))],
    [
      'a source that knows one client only',
      faulty((source) => ({
        publish: (id, generation) =>
          (id === 'till' ? source.publish?.(id, generation) : undefined) ?? Promise.resolve(),
      })),
    ],
    [
      'a source that misses the last change',
      faulty((source) => ({ publish: (id, generation) => source.publish?.(id, generation - 1) ?? Promise.resolve() })),
    ],
    [
      'reads that come back empty',
      faulty((source) => ({ read: async (sinceMs) => ({ ...(await source.read(sinceMs)), floors: [] }) })),
    ],
    [
      'reads that leave out what moved since the one before',
      faulty((source) => ({ read: (sinceMs) => source.read(sinceMs === 0 ? 0 : sinceMs + 70_000) })),
    ],
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

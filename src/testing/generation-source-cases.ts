import { readOptions } from '../core/options';
import { failureCases } from './source-failure-cases';
import { benchOf } from './source-fixture';
import type { GenerationSourceFixture } from './source-fixture';
import { floorCases } from './source-floor-cases';
import { hintCases } from './source-hint-cases';

/** Options of `generationSourceCases()`. */
export interface GenerationSourceCasesOptions {
  /** Opens a source on an empty store of its own; called once per case. */
  readonly create: () => Promise<GenerationSourceFixture>;
  /** Longest time for a hint, a close or a recovery, in ms. Default 2000. */
  readonly timeoutMs?: number | undefined;
}

/** One sentence about sources, with the test that holds a source to it. */
export interface GenerationSourceCase {
  readonly name: string;
  /** Rejects with an AssertionError (node:assert) when the source breaks the sentence. */
  readonly run: () => Promise<void>;
}

/**
 * The conformance suite of the extension point `GenerationSource`: what passes can be given to `authenticate()`.
 * It needs no test framework. A case about something that is optional (`watch`, `publish` of the source; `another`,
 * `disconnect` of the fixture) passes where it is not offered.
 *
 * @throws TypeError when an option is wrong.
 * @example
 * ```ts
 * import { test } from 'node:test';
 * import { memoryGenerations } from 'tillgate/generations';
 * import { generationSourceCases } from 'tillgate/testing';
 *
 * async function create() {
 *   const source = memoryGenerations();
 *   return { source, close: () => source.close() };
 * }
 * for (const { name, run } of generationSourceCases({ create })) void test(name, run);
 * ```
 */
export function generationSourceCases(options: GenerationSourceCasesOptions): GenerationSourceCase[] {
  const given = readOptions('generationSourceCases', options, ['create', 'timeoutMs']);
  const create = given.callable('create', options.create);
  const timeoutMs = given.number('timeoutMs', 2_000, { unit: 'ms', min: 1, max: 600_000 });
  return [...floorCases, ...hintCases, ...failureCases].map(({ name, test }) => ({
    name,
    async run() {
      const fixture = await create();
      try {
        await test(benchOf(fixture, timeoutMs));
      } finally {
        await fixture.close();
      }
    },
  }));
}

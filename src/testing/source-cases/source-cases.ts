import { readOptions } from '../../core/options';
import type { ContractCase } from '../contract-cases/operation-cases';
import { floorCases } from './floor-cases';
import type { GenerationSourceFixture, SourceContext } from './harness';
import { watchCases } from './watch-cases';

/** Options of `generationSourceCases()`. */
export interface GenerationSourceCasesOptions {
  /** Opens a source on an empty store of its own; called once per case. */
  readonly create: () => Promise<GenerationSourceFixture>;
  /** Longest time for a hint, a close or a recovery, in ms. Default 2000. */
  readonly timeoutMs?: number | undefined;
}

/**
 * The conformance suite of the extension point `GenerationSource`: a source that passes can be given to
 * `authenticate()`. It needs no test framework. A case about an optional member (`watch`, `publish` of the source;
 * `another`, `disconnect` of the fixture) passes when that member is missing.
 *
 * @throws TypeError when an option is wrong
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
export function generationSourceCases(options: GenerationSourceCasesOptions): ContractCase[] {
  const given = readOptions('generationSourceCases', options, ['create', 'timeoutMs']);
  const create = given.callable('create', options.create);
  const timeoutMs = given.number('timeoutMs', 2_000, { unit: 'ms', min: 1, max: 600_000 });
  return Object.entries({ ...floorCases, ...watchCases }).map(([name, test]) => ({
    name,
    async run() {
      const fixture = await create();
      try {
        await test(contextOf(fixture, timeoutMs));
      } finally {
        await fixture.close();
      }
    },
  }));
}

function contextOf(fixture: GenerationSourceFixture, timeoutMs: number): SourceContext {
  const { source } = fixture;
  const publisher = fixture.publish ? fixture : source;
  if (!publisher.publish) {
    throw new TypeError('generationSourceCases(): the source has no publish(), so the fixture must have one');
  }
  return { fixture, source, timeoutMs, publish: async (...floor) => publisher.publish?.(...floor) };
}

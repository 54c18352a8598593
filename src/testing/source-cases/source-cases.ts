import { readOptions } from '../../core/options';
import type { Change } from '../../generation/log';
import type { ContractCase } from '../contract-cases/operation-cases';
import { CASES } from './cases';
import type { GenerationSourceFixture } from './harness';

/** Options of `generationSourceCases()`. */
export interface GenerationSourceCasesOptions {
  /** Opens a source on an empty log of its own; called once per case. */
  readonly create: () => Promise<GenerationSourceFixture>;
  /** Changes in the largest case. Default 10000. */
  readonly changes?: number | undefined;
  /** Longest time for a hint, a close or a recovery, in ms. Default 2000. */
  readonly timeoutMs?: number | undefined;
}

/**
 * The conformance suite of the extension point `GenerationSource`: a source that passes can be given to `authenticate()` and
 * `startPublisher()`. It needs no test framework. A case about an optional member (`append` of the source; `another`,
 * `disconnect`, `wipe`, `snapshot` of the fixture) passes when that member is missing.
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
  const given = readOptions('generationSourceCases', options, ['create', 'changes', 'timeoutMs']);
  const create = given.callable('create', options.create);
  const count = given.number('changes', 10_000, { unit: 'changes', min: 1, integer: true });
  const timeoutMs = given.number('timeoutMs', 2_000, { unit: 'ms', min: 1, max: 600_000 });
  return Object.entries(CASES).map(([name, test]) => ({
    name,
    async run() {
      const fixture = await create();
      const { source } = fixture;
      async function append(...changes: Change[]): Promise<void> {
        if (source.append) await source.append(changes);
        else await fixture.append?.(changes);
      }
      try {
        if (!source.append && !fixture.append) {
          throw new TypeError('generationSourceCases(): the source has no append(), so the fixture must have one');
        }
        await test({ fixture, source, count, timeoutMs, append });
      } finally {
        await fixture.close();
      }
    },
  }));
}

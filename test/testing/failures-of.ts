import { failuresIn } from '../../src/testing/contract/subject';
import type { ContractCases } from '../../src/testing';

/** One text for each requirement that is not met, in order; runs no more cases than that takes. */
export async function failuresOf(cases: ContractCases, atMost = Infinity): Promise<readonly string[]> {
  const failures: string[] = [];
  for (const { name, run } of cases) {
    if (failures.length >= atMost) break;
    await run().catch((error: Error) => {
      for (const one of failuresIn(error, name)) failures.push([one.name, ...one.differences].join('\n  '));
    });
  }
  return failures;
}

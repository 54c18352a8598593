import type { ContractCases } from '../../src/testing';

/** The messages of the first failures, in order; runs no more cases than that takes. */
export async function failuresOf(cases: ContractCases, atMost = Infinity): Promise<readonly string[]> {
  const failures: string[] = [];
  for (const { run } of cases) {
    if (failures.length === atMost) break;
    await run().catch((error: Error) => failures.push(error.message));
  }
  return failures;
}

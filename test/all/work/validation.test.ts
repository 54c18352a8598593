import { loadContract } from '../../../src/app/contract';
import { compiler } from '../../../src/app/validation';
import { allOperations } from '../../../src/testing/openapi/document';
import type { ContractDocument } from '../../../src/testing/openapi/document';
import { largestBodies } from '../../support/largest-bodies';

/** The worst takes some 100 times as long; a pattern that backtracks took 100,000 times. */
const LIMIT = 500;

/** How many times as long as `JSON.parse` each operation takes to validate the body that is worst for it, in CPU time. */
function worstCosts(): ReadonlyMap<string, number> {
  const contract = loadContract();
  const compile = compiler(contract);
  const costs = new Map<string, number>();
  for (const { method, path, operation } of allOperations(contract as unknown as ContractDocument)) {
    if (!path.startsWith('/v1/')) continue;
    const media = operation.requestBody?.content['application/json'] as { readonly example?: object } | undefined;
    const validate = compile(method, path).body?.validate;
    if (!media?.example || !validate) continue;
    const ratios = [...largestBodies(media.example)].map(({ text }) => {
      const body: unknown = JSON.parse(text);
      return lowest(() => cpuMsOf(() => validate(body)) / cpuMsOf(() => JSON.parse(text) as unknown));
    });
    costs.set(`${method} ${path}`, Math.max(...ratios));
  }
  return costs;
}

/** The lowest of three measurements, or one that is low enough: on a busy machine one of them may say nothing. */
function lowest(measure: () => number): number {
  let low = measure();
  for (let more = 2; more > 0 && low >= LIMIT; more--) low = Math.min(low, measure());
  return low;
}

function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

it(`the largest body of every operation, right or wrong, is validated in under ${LIMIT} times of what JSON.parse takes`, () => {
  const costs = worstCosts();
  expect(costs.size).toBeGreaterThan(20);
  expect([...costs].filter(([, ofParsing]) => ofParsing >= LIMIT)).toEqual([]);
});

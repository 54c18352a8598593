import { largestBodies } from '../../test/support/largest-bodies';
import { loadContract, operationsOf } from '../../src/openapi/document';
import { compileContract } from '../../src/app/validation/compile';
import { median, round, table } from '../stats';
import type { Suite } from './suite';

/** What one operation takes to validate the body that is worst for it. */
export interface Cost {
  readonly operation: string;
  /** What is in the body. */
  readonly body: string;
  readonly cpuMs: number;
  /** How many times as long as `JSON.parse` of the same body. */
  readonly ofParsing: number;
}

/** The CPU time that the most expensive of the largest bodies takes, right or wrong, per operation; the worst one first. */
export function validationCosts(rounds: number): readonly Cost[] {
  const contract = loadContract();
  const find = compileContract(contract);
  const costs = operationsOf(contract).flatMap(({ method, path, operation }): readonly Cost[] => {
    const media = operation.requestBody?.content['application/json'] as { readonly example?: object } | undefined;
    const validate = find(path)?.target.get(method)?.body?.validate;
    if (!media?.example || !validate) return [];
    const all = [...largestBodies(media.example)].map(({ name, text }) => {
      const body: unknown = JSON.parse(text);
      const [parsing, validating] = medians(rounds, [() => JSON.parse(text) as unknown, () => validate(body)]);
      const operation = `${method} ${path}`;
      return { operation, body: name, cpuMs: validating, ofParsing: validating / parsing };
    });
    return all.sort(dearestFirst).slice(0, 1);
  });
  return costs.sort(dearestFirst);
}

/** The CPU time of validation, for the bodies that cost most. */
export const validation: Suite = {
  about: 'validation of the largest bodies, 100 kB, right and wrong: the worst body of each operation',
  defaults: { rounds: 5, operations: 5 },
  run({ rounds = 0, operations = 0 }) {
    const rows = validationCosts(rounds).slice(0, operations);
    return Promise.resolve(
      table(
        ['operation', 'body', 'CPU, ms', 'of JSON.parse'],
        rows.map(({ operation, body, cpuMs, ofParsing }) => [operation, body, round(cpuMs), round(ofParsing)]),
      ),
    );
  },
};

/** The median CPU time of two pieces of work that run by turns. */
function medians(rounds: number, [one, other]: readonly [() => unknown, () => unknown]): [number, number] {
  const times = Array.from({ length: rounds }, () => [cpuMsOf(one), cpuMsOf(other)] as const);
  return [median(times.map(([first]) => first)), median(times.map(([, second]) => second))];
}

function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

function dearestFirst(a: Cost, b: Cost): number {
  return b.cpuMs - a.cpuMs;
}

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FAULTS } from '../../all/chaos/faults';
import { EVENTS } from '../../simulation/events';
import { FAULTS as PLANTED } from '../../simulation/faults';

const ROOT = join(__dirname, '../../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

const [, outages = ''] = read('docs/generations-operators.md').split('\n## Outages\n');
/** The rows of the table of faults: the fault, and the scenarios that it names. */
const rows = outages
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter(([, fault = '']) => fault !== 'fault' && !fault.startsWith('---'))
  .map(([, fault, , , , scenarios = '']) => ({
    fault,
    scenarios: [...scenarios.matchAll(/`([^`]+)`/g)].map(([, name]) => name),
  }));

const edges = [...read('test/all/chaos/edges.test.ts').matchAll(/^ *(?:edge\(|scenario\()?\s*['`](\d+): /gm)].map(
  ([, number]) => `edge ${number}`,
);

const simulated = Object.keys(EVENTS).map((name) => `simulation: ${name}`);
const planted = PLANTED.map(({ name }) => `planted: ${name}`);

describe('the table of faults for operators', () => {
  it('has rows, and the harness has its edges', () => {
    expect([rows.length >= 20, edges.length >= 7]).toEqual([true, true]);
  });

  it.each(rows)('$fault: each scenario is one of the harness', ({ scenarios }) => {
    expect(scenarios).not.toEqual([]);
    for (const name of scenarios) expect([...edges, ...FAULTS, ...simulated, ...planted]).toContain(name);
  });

  it.each([...new Set([...edges, ...FAULTS])].filter((name) => name !== 'burst of requests'))(
    'the scenario "%s" belongs to a row',
    (name) => {
      expect(rows.flatMap(({ scenarios }) => scenarios)).toContain(name);
    },
  );
});

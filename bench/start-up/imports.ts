import { join } from 'node:path';
import { round, table } from '../stats';
import { costs } from './fresh-process';

const DIST = join(__dirname, '../../dist');

/** What `import 'tillgate'` costs, alone and beyond express, which every user has loaded anyway. */
export function imports(rounds: number): string {
  const tillgate = `require(${JSON.stringify(join(DIST, 'index.js'))})`;
  const testing = `require(${JSON.stringify(join(DIST, 'testing/index.js'))})`;
  const express = `require(${JSON.stringify(require.resolve('express'))})`;
  const cost = costs({ express, tillgate, both: `${express}; ${tillgate}`, testing }, rounds);

  const row = (name: string, wallMs: number, cpuMs: number): readonly (string | number)[] => {
    return [name, round(wallMs), round(cpuMs), `${Math.round((cpuMs / cost.express.cpuMs) * 100)}%`];
  };
  return table(
    ['loaded in a fresh process', 'ms', 'CPU ms', 'of express'],
    [
      row('express', cost.express.wallMs, cost.express.cpuMs),
      row('tillgate alone', cost.tillgate.wallMs, cost.tillgate.cpuMs),
      row('tillgate beyond express', cost.both.wallMs - cost.express.wallMs, cost.both.cpuMs - cost.express.cpuMs),
      row('tillgate/testing alone', cost.testing.wallMs, cost.testing.cpuMs),
    ],
  );
}

/**
 * What generations cost and bear, as Markdown tables. `npm run bench:generations -- <options>`:
 *
 * - `[--changes 1000] [--servers 8] [--engines redis,postgres,http]`: from a change to the last of 8 processes that refuses
 *   the old token, next to a bare publish / subscribe of the same store.
 * - `--processes 16 --floors 10000 --changes 50 [--engines ...]`: what the store does for so many processes, and a model.
 * - `--faults --changes 100000 [--seed N]`: changes with faults at random.
 */
import { parseArgs } from 'node:util';
import { ENGINE_NAMES } from './engines';
import { faultsTable } from './faults';
import { propagationTable } from './propagation';
import { sizingTables } from './sizing';

const { values } = parseArgs({
  options: {
    changes: { type: 'string' },
    engines: { type: 'string', default: ENGINE_NAMES.join(',') },
    faults: { type: 'boolean', default: false },
    floors: { type: 'string', default: '10000' },
    processes: { type: 'string' },
    seconds: { type: 'string', default: '6' },
    seed: { type: 'string', default: '1' },
    servers: { type: 'string', default: '8' },
  },
});
const { faults, processes } = values;
const engines = values.engines.split(',');

function run(): Promise<string> {
  const changes = (byDefault: number): number => Number(values.changes ?? byDefault);
  if (faults) return faultsTable(changes(100_000), Number(values.seed));
  if (processes === undefined)
    return propagationTable({ engines, changes: changes(1_000), servers: Number(values.servers) });
  const [floors, seconds] = [Number(values.floors), Number(values.seconds)];
  return sizingTables({ engines, processes: Number(processes), floors, changes: changes(50), seconds });
}

run().then(
  (report) => {
    console.log(`\n${report}\n`);
    process.exit(0);
  },
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);

/**
 * How long a change takes to be in force, as a Markdown table. `npm run bench:generations`:
 *
 * `[--changes 1000] [--servers 8] [--engines redis,postgres,http]`: from a change being sent to the last of 8 processes that refuses the
 * old token, next to a bare publish / subscribe of the same engine.
 */
import { parseArgs } from 'node:util';
import { ENGINE_NAMES } from './engines';
import { propagationTable } from './propagation';

const { values } = parseArgs({
  options: {
    changes: { type: 'string', default: '1000' },
    engines: { type: 'string', default: ENGINE_NAMES.join(',') },
    servers: { type: 'string', default: '8' },
  },
});
const { engines, changes, servers } = values;

propagationTable({ engines: engines.split(','), changes: Number(changes), servers: Number(servers) }).then(
  (report) => {
    console.log(`\n${report}\n`);
    process.exit(0);
  },
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);

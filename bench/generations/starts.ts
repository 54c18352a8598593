/**
 * How long a resource server takes to start on a log with many changes. `npm run bench:starts`:
 *
 * `[--changes 100000] [--engines redis,postgres] [--starts 5]`: each start is a new process; a cell is the median, with the
 * least and the most.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { median, round, table } from '../stats';
import { startEngine } from './engines';
import type { ColdStartFigures } from './messages';

const { values } = parseArgs({
  options: {
    changes: { type: 'string', default: '100000' },
    engines: { type: 'string', default: 'redis,postgres' },
    starts: { type: 'string', default: '5' },
  },
});

/** The columns, in their order. */
const COLUMNS: Readonly<Record<keyof ColdStartFigures, string>> = {
  readSeconds: 'first read, s',
  cpuSeconds: 'of it CPU, s',
  blockMs: 'longest event loop block, ms',
  megabytes: 'memory, MB',
};

async function main(): Promise<void> {
  const rows = [];
  for (const name of values.engines.split(',')) rows.push(await measure(name));
  console.log(`\n${values.changes} changes in the log\n`);
  console.log(table(['source', ...Object.values(COLUMNS)], rows));
}

async function measure(name: string): Promise<string[]> {
  const engine = await startEngine(name, Number(values.changes));
  const starts: ColdStartFigures[] = [];
  while (starts.length < Number(values.starts)) {
    const child = fork(join(__dirname, 'cold-start.ts'), [engine.url, values.changes], {
      execArgv: ['--expose-gc', '--conditions=source', '--import', 'tsx'],
    });
    const ended = once(child, 'exit');
    const failed = ended.then(([code]) => {
      throw new Error(`the reading process ended with ${code}`);
    });
    const [figures] = (await Promise.race([once(child, 'message'), failed])) as [ColdStartFigures];
    starts.push(figures);
    child.disconnect();
    await ended;
  }
  await engine.stop();
  const columns = Object.keys(COLUMNS) as (keyof ColdStartFigures)[];
  return [name, ...columns.map((column) => ranged(starts.map((start) => start[column])))];
}

function ranged(figures: readonly number[]): string {
  const [least, most] = [round(Math.min(...figures)), round(Math.max(...figures))];
  return least === most ? String(least) : `${round(median(figures))} (${least}-${most})`;
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);

/**
 * What a million floors cost one resource server: its first read with the gate's own time limit, CPU time, the longest
 * block of its event loop, memory, lookup, and how soon 10,000 changes together are refused. `npm run bench:floors`.
 *
 * Options: `--floors N` (1000000), `--engines redis,postgres`,
 * `--starts N` (5): each start is a new process; a cell is the median, with the least and the most. A start during which the
 * hypervisor took more than a fiftieth of its time is repeated, at most 19 times.
 */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { median, round, table } from '../stats';
import { startEngine } from './engines';
import type { Engine } from './engines';
import type { ColdStartFigures, FromColdStart } from './messages';
import { preciseNow } from './messages';

const { values } = parseArgs({
  options: {
    floors: { type: 'string', default: '1000000' },
    engines: { type: 'string', default: 'redis,postgres' },
    starts: { type: 'string', default: '5' },
  },
});
const BURST = 10_000;
/** Of them under way together: more would wait for a connection longer than its time limit. */
const TOGETHER = 500;
const MOST_STOLEN = 0.02;
const MOST_ATTEMPTS = 20;
/** Between starts; a machine that is shared by time slices gets some back. */
const REST_MS = 5_000;

/** The columns, in their order. */
const COLUMNS: Readonly<Record<keyof ColdStartFigures, string>> = {
  readSeconds: 'first read, s',
  cpuSeconds: 'of it CPU, s',
  blockMs: 'longest event loop block, ms',
  megabytes: 'memory, MB',
  rss: 'RSS, MB',
  lookupNs: 'lookup, ns',
};

async function main(): Promise<void> {
  const rows = [];
  for (const name of values.engines.split(',')) rows.push(await measure(name));
  console.log(`\n${values.floors} floors in one resource server\n`);
  console.log(table(['source', ...Object.values(COLUMNS), `burst of ${BURST}, s`], rows));
}

async function measure(name: string): Promise<string[]> {
  const engine = await startEngine(name, Number(values.floors));
  const starts: ColdStartFigures[] = [];
  const bursts: number[] = [];
  for (let attempt = 1; starts.length < Number(values.starts); attempt++) {
    const stolenBefore = stolenSeconds();
    const child = fork(join(__dirname, 'cold-start.ts'), [engine.url, values.floors], {
      execArgv: ['--expose-gc', '--import', 'tsx'],
    });
    const { figures } = (await message(child)) as { readonly figures: ColdStartFigures };
    const stolen = stolenSeconds() - stolenBefore;
    console.error(name, JSON.stringify({ ...figures, stolen }));
    const isDisturbed = stolen > MOST_STOLEN * figures.readSeconds && attempt < MOST_ATTEMPTS;
    if (!isDisturbed) {
      starts.push(figures);
      bursts.push(await burstSeconds(engine, child));
      attempt = 0;
    }
    const ended = once(child, 'exit');
    child.disconnect();
    await ended;
    await new Promise((resolve) => setTimeout(resolve, REST_MS));
  }
  await engine.stop();
  const columns = Object.keys(COLUMNS) as (keyof ColdStartFigures)[];
  return [name, ...columns.map((column) => ranged(starts.map((start) => start[column]))), ranged(bursts)];
}

/** Time that the hypervisor gave to others, of all cores; Linux counts it in hundredths of a second. */
function stolenSeconds(): number {
  if (process.platform !== 'linux') return 0;
  return Number(readFileSync('/proc/stat', 'utf8').split('\n', 1)[0]?.trim().split(/\s+/)[8]) / 100;
}

/** Publishes changes of as many clients, and waits until every one is refused. */
async function burstSeconds(engine: Engine, child: ChildProcess): Promise<number> {
  const clientIds = Array.from({ length: BURST }, (_, index) => `client-${index}`);
  const generation = await engine.register(clientIds);
  const refused = message(child);
  child.send({ clientIds, generation });
  const startedMs = preciseNow();
  for (let first = 0; first < BURST; first += TOGETHER) {
    await Promise.all(clientIds.slice(first, first + TOGETHER).map((clientId) => engine.change(clientId)));
  }
  const { refusedAt } = (await refused) as { readonly refusedAt: number };
  return (refusedAt - startedMs) / 1000;
}

async function message(child: ChildProcess): Promise<FromColdStart> {
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the reading process ended with ${code}`);
  });
  const [received] = (await Promise.race([once(child, 'message'), ended])) as [FromColdStart];
  return received;
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

import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { countCrashes, fuzz } from './campaign';
import type { Tally } from './campaign';
import { TARGETS } from './targets';

/** `npm run fuzz -- --runs 100000 [--seed 1] [--only token,header]`: sends that many inputs, split among the targets. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { runs: { type: 'string', default: '10000' }, seed: { type: 'string' }, only: { type: 'string' } },
  });
  const names = values.only?.split(',') ?? Object.keys(TARGETS);
  const seed = Number(values.seed ?? randomInt(2 ** 31));
  const runs = Math.ceil(Number(values.runs) / names.length);
  const total: Tally = { inputs: 0, ok: 0, refused: 0, unavailable: 0, failed: 0, noResponse: 0 };
  const startedAt = performance.now();
  line('target', ['inputs', '2xx', '4xx', '503', 'other 5xx', 'no response', 'crashes', 'seconds']);

  let crashed = 0;
  for (const name of names) {
    const open = TARGETS[name];
    if (!open) throw new Error(`no target ${name}: there are ${Object.keys(TARGETS).join(', ')}`);
    const from = performance.now();
    const tally = { ...total, inputs: 0, ok: 0, refused: 0, unavailable: 0, failed: 0, noResponse: 0 };
    const crashes = await countCrashes(async () => void Object.assign(tally, await fuzz(open, runs, seed)));
    for (const crash of crashes) console.error(crash);
    crashed += crashes.length;
    for (const key of Object.keys(total) as (keyof Tally)[]) total[key] += tally[key];
    line(name, [...row(tally), crashes.length, seconds(from)]);
  }
  line('all', [...row(total), crashed, seconds(startedAt)]);
  console.log(`seed ${seed}`);
  if (crashed > 0 || total.failed > 0) process.exitCode = 1;
}

function row({ inputs, ok, refused, unavailable, failed, noResponse }: Tally): number[] {
  return [inputs, ok, refused, unavailable, failed, noResponse];
}

function seconds(since: number): string {
  return ((performance.now() - since) / 1000).toFixed(1);
}

function line(name: string, cells: readonly (string | number)[]): void {
  console.log(name.padEnd(16) + cells.map((cell) => String(cell).padStart(11)).join(''));
}

main().catch((error: unknown) => {
  // A violated property: fast-check names the seed and the smallest input, the cause says what was violated.
  console.error(error instanceof Error ? `${error.message}\n${String(error.cause)}` : error);
  process.exitCode = 1;
});
